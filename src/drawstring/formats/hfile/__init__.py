"""HFiles, format version 3: sorted keys and values (wire format: HFile)."""

from drawstring.formats.hfile.reader import HFileReader
from drawstring.formats.hfile.records import read_hfile_records

__all__ = ["HFileReader", "read_hfile_records"]
