"""The syntax tree: the text as written, each node with its span, nothing checked and nothing resolved.

Gives: frozen nodes for statements, patterns, clauses and expressions. Code writes them with this module, as `syntax.Compare`:
what they become has the same names.
Never: knows a type, an alias or a slot.
"""

from fairlead.language.parsing.syntax.clauses import *
from fairlead.language.parsing.syntax.expressions import *
from fairlead.language.parsing.syntax.patterns import *
from fairlead.language.parsing.syntax.statements import *
from fairlead.language.parsing.syntax.words import *
