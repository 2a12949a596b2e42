"""What the comment before a declaration of the headers says: a text, and tags.

    @null NAME: …  the parameter NAME, the output *NAME or what is `returned` may be NULL
    @borrowed …    how long the returned pointer is valid
    @number NAME   an int32_t that is a number; any other is a flag
    @c …           what only concerns C

A text is written for all languages. `in_language` makes it fit one: NULL is its word for an absent
value, and a status is the exception that stands for it.
"""
import re
from dataclasses import dataclass, field

TAGS = ("null", "borrowed", "number", "c")
RETURNED = "returned"


class DocError(Exception):
    pass


@dataclass
class Doc:
    text: str = ""
    null: dict = field(default_factory=dict)  # name -> the meaning of NULL
    numbers: set = field(default_factory=set)
    borrowed: str = ""
    only_c: str = ""

    def __bool__(self):
        return bool(self.text)


def read(comment):
    """The Doc of a comment without its delimiters."""
    doc = Doc()
    parts = re.split(r"\s*(?:^|\n)\s*@(?=\w)", comment)
    doc.text = " ".join(parts[0].split())
    for part in parts[1:]:
        tag, _, rest = " ".join(part.split()).partition(" ")
        if tag == "null":
            name, _, meaning = rest.partition(": ")
            if not meaning:
                raise DocError(f"@null {rest}: not 'NAME: what NULL means'")
            doc.null[name] = meaning
        elif tag == "borrowed":
            doc.borrowed = rest
        elif tag == "number":
            doc.numbers |= set(rest.split())
        elif tag == "c":
            doc.only_c = rest
        else:
            raise DocError(f"unknown tag @{tag}, known are {', '.join(TAGS)}")
    return doc


def in_language(text, absent, status):
    """absent: the word for NULL; status: what makes of "INDEX" the name of an exception."""
    text = re.sub(r"\bNULL\b", absent, text)
    return re.sub(r"\bTT_([A-Z_]+)\b", lambda m: status(m[1]), text)


def described(doc, absent, status, names=None):
    """The text, and the meaning of absent results and parameters. names: parameters that may be
    absent in this language -> their names in it."""
    sentences = [doc.text]
    for name, meaning in doc.null.items():
        if name in ("out", RETURNED) and ". " not in doc.text:
            sentences[0] = f"{doc.text.removesuffix('.')}, {absent} if {meaning}."
        elif name in ("out", RETURNED):
            sentences.append(f"It is {absent} if {meaning}.")
        elif name in (names or {}):
            sentences.append(f"If `{names[name]}` is {absent}: {meaning}.")
    return in_language(" ".join(sentences), absent, status)
