"""Names of the inputs and outputs of an ONNX model, which are written as in0, …, out0, …."""
from __future__ import annotations

from typing import Iterator

GRAPH = 7  # of a model
NODE, INPUT, OUTPUT = 1, 11, 12  # of a graph
NAME = 1  # of an input or an output
NODE_INPUT, NODE_OUTPUT, NODE_TYPE = 1, 2, 4
LENGTH = 2  # the wire type of texts and messages


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Returns a number of protobuf's and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def packed(value: int) -> bytes:
    """Returns a number as protobuf has it."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes | memoryview) -> bytes:
    """Returns a field that holds a text or a message."""
    return packed(number << 3 | LENGTH) + packed(len(content)) + bytes(content)


def fields(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yields the number of each field, its content if it is a text or a message, and the whole."""
    at = 0
    while at < len(data):
        key, start = varint(data, at)
        if key & 7 == LENGTH:
            size, start = varint(data, start)
            end = start + size
        else:  # of this kind, tt writes numbers only
            _, end = varint(data, start)
        yield key >> 3, data[start:end], data[at:end]
        at = end


def renamed_fields(data: memoryview, names: dict[bytes, bytes], where: tuple[int, ...]) -> bytes:
    """Returns a message whose texts in some fields are replaced by those of a dict."""
    out = []
    for number, content, whole in fields(data):
        new = names.get(bytes(content)) if number in where else None
        out.append(whole if new is None else field(number, new))
    return b"".join(out)


def renamed(model: bytes, names: dict[str, str]) -> bytes:
    """Returns a model of tt's with other names of its inputs and outputs.

    These are read and written by nodes of the type Identity alone.
    """
    new = {old.encode(): name.encode() for old, name in names.items()}
    parts: list[bytes | memoryview] = []
    for number, content, whole in fields(memoryview(model)):
        if number != GRAPH:
            parts.append(whole)
            continue
        graph: list[bytes | memoryview] = []
        for kind, item, all_of_it in fields(content):
            if kind in (INPUT, OUTPUT):
                graph.append(field(kind, renamed_fields(item, new, (NAME,))))
            elif kind == NODE and (NODE_TYPE, b"Identity") in [(n, c) for n, c, _ in fields(item)]:
                node = renamed_fields(item, new, (NODE_INPUT, NODE_OUTPUT))
                graph.append(field(NODE, node))
            else:
                graph.append(all_of_it)
        parts.append(field(GRAPH, b"".join(graph)))
    return b"".join(parts)
