"""Input and output: records, tables and files become Columns; relations and rejected records become files."""

from fairlead.transport.admission.problems import Rejected
from fairlead.transport.admission.records import RecordReader, read_records
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.events import read_events
from fairlead.transport.files.event_files import Validation, bytes_of, read_files, resolve, validate_files
from fairlead.transport.output.relation_files import RejectWriter, RelationWriter, open_relations
from fairlead.transport.tables.table_reader import is_table, read_table

__all__ = [
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
