"""HFile format version 3: sorted keys and values (wire format: HFile)."""

from drawstring.formats.hfile.reader import HFileReader
from drawstring.formats.hfile.records import read_hfile_records
from drawstring.formats.hfile.writer import encode_hfile

__all__ = ["HFileReader", "encode_hfile", "read_hfile_records"]
