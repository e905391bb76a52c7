"""HFile format version 3: sorted keys and values (wire format: HFile)."""

from drawstring.formats.hfile.blocks import Codec, HFileEntries
from drawstring.formats.hfile.reader import HFileReader, read_hfile_records
from drawstring.formats.hfile.writer import HFileWriter, encode_hfile

__all__ = ["Codec", "HFileEntries", "HFileReader", "HFileWriter", "encode_hfile", "read_hfile_records"]
