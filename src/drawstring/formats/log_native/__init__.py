"""Native log files: the log format, version 2 (RFC-103). The whole file is one block.

    <fileId>_<writeToken>_<instant>_<version>.log.parquet       records, as in a base file
                                             .deletes.parquet   keys and ordering values of deleted records
                                             .cdc.parquet       images of changes

The headers of the block are entries of the file's footer (`footer`). `.hfile` is the same in an HFile, as in
metadata tables. RFC-103 was first proposed with the names of inline log files: such files are read as well,
and their footers say what they hold.
"""

from drawstring.formats.log_native.block import (
    NativeBlock,
    native_block,
    native_deletes,
    native_deletes_windows,
    native_rows,
)
from drawstring.formats.log_native.deletes import DeleteLog, deletes_schema
from drawstring.formats.log_native.footer import encode_footer
from drawstring.formats.log_native.hfiles import encoded_deletes, hfile_entries

__all__ = [
    "DeleteLog",
    "NativeBlock",
    "deletes_schema",
    "encode_footer",
    "encoded_deletes",
    "hfile_entries",
    "native_block",
    "native_deletes",
    "native_deletes_windows",
    "native_rows",
]
