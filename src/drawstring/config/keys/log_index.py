"""Options of the index in log files."""

from __future__ import annotations

from typing import Final

from drawstring.config.options.option import Kind, Option

CLIQUE_FILES: Final = 10
ENABLE: Final = "hoodie.index.log.enable"

LOG_INDEX_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        ENABLE,
        "Whether log files of a MERGE_ON_READ table contain an index of their keys, so that new records can "
        "go to the log files of small file groups. With BLOOM (the default then) and GLOBAL_BLOOM. Apache "
        "Hudi's own indexes of these types do not search log files: compact the table before Hudi upserts to"
        " it.",
        kind=Kind.FLAG,
        field="log_index",
        stored_as=ENABLE,
    ),
    Option(
        "hoodie.index.log.clique.files",
        "Number of log files of a file group that share one key summary (a clique, RFC-06) in the index in "
        "log files; 10 when not given.",
        kind=Kind.NUMBER,
        field="log_index_clique_files",
        stored_as="hoodie.index.log.clique.files",
    ),
)
