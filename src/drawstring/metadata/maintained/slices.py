"""The file slices of a table around an instant."""

from __future__ import annotations

from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.model.files import FileSlice


def slice_at(view: FileGroupView, place: tuple[str, str]) -> FileSlice | None:
    """Return the slice of a file group, given by partition path and file id; None without one."""
    partition, file_id = place
    return next((each for each in view.slices(partition) if each.file_id == file_id), None)
