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
        facts: a look at the table; it is looked at again where a clean was faster.

    Raises:
        CorruptTableError: a file is gone that has to be there.
    """
    return list(planned(facts, _slices)[1].tasks)


def _slices(facts: TableFacts) -> Draft[FileSlice]:
    lookup = SliceLookup(facts.storage.spec, facts.config, facts.timeline)
    found = [file_slice for path in lookup.partitions() for file_slice in lookup.slices(path)]
    return Draft(found, partial(is_needed, facts))
