"""The file slices that a snapshot query reads."""

from __future__ import annotations

from functools import partial

from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.model.files import FileSlice
from drawstring.query.cleaned_files import is_needed
from drawstring.query.facts import TableFacts
from drawstring.query.replanning import Draft, planned


def latest_slices(facts: TableFacts) -> list[FileSlice]:
    """Return the latest file slice of every file group.

    Args:
        facts: the loaded table; it is loaded again if a clean deleted files meanwhile.

    Raises:
        CorruptTableError: a required file is missing.
    """
    return list(planned(facts, _slices)[1].tasks)


def _slices(facts: TableFacts) -> Draft[FileSlice]:
    lookup = SliceLookup(facts.storage.spec, facts.config, facts.timeline)
    paths = facts.scoped(lookup.partitions())
    slices = [file_slice for path in paths for file_slice in lookup.slices(path)]
    return Draft(slices, partial(is_needed, facts))
