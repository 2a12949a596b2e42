"""Reads libraries of macOS and iOS (Mach-O, 64 bits, little-endian)."""
import struct

ARM64 = 0x0100000C
SYMBOLS, LOADS, NAME, SIGNATURE, VERSION = 0x2, 0xC, 0xD, 0x1D, 0x32  # load commands
EXTERNAL, PRIVATE, DEFINED = 0x01, 0x10, 0x0E  # bits of a symbol's type


def text_at(data, start):
    return data[start : data.index(b"\0", start)].decode()


class Library:
    def __init__(self, path):
        data = path.read_bytes()
        magic, self.processor, _, _, count = struct.unpack_from("<5I", data)
        assert magic == 0xFEEDFACF, f"{path} is no library of macOS"
        self.name = ""
        self.needs = []
        self.exports = set()
        self.oldest_system = None
        self.is_signed = False
        at = 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", data, at)
            command &= 0x7FFFFFFF
            words = struct.unpack_from(f"<{min(size // 4, 6)}I", data, at)
            if command in (LOADS, NAME):
                name = text_at(data, at + words[2])
                if command == NAME:
                    self.name = name
                else:
                    self.needs.append(name)
            elif command == SYMBOLS:
                self.exports = set(exported(data, *words[2:5]))
            elif command == VERSION:
                self.oldest_system = (words[3] >> 16, words[3] >> 8 & 255)
            elif command == SIGNATURE:
                self.is_signed = True
            at += size


def exported(data, symbols, count, strings):
    for i in range(count):
        name, kind = struct.unpack_from("<IB", data, symbols + 16 * i)
        if kind & EXTERNAL and kind & DEFINED and not kind & PRIVATE:
            yield text_at(data, strings + name)
