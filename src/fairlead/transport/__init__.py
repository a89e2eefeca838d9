"""Input and output: records, tables and files become Columns; relations and rejected records become files."""

from fairlead.transport.events import read_events
from fairlead.transport.files import Validation, bytes_of, read_files, resolve, validate_files
from fairlead.transport.problems import CODES, Rejected
from fairlead.transport.records import RecordReader, read_records
from fairlead.transport.sequences import LastSequences
from fairlead.transport.tables import is_table, read_table
from fairlead.transport.write import RejectWriter, RelationWriter, open_relations

__all__ = [
    "CODES",
    "LastSequences",
    "RecordReader",
    "RejectWriter",
    "Rejected",
    "RelationWriter",
    "Validation",
    "bytes_of",
    "is_table",
    "open_relations",
    "read_events",
    "read_files",
    "read_records",
    "read_table",
    "resolve",
    "validate_files",
]
