"""tt.files: arrays of NumPy, IDX, CSV and GGUF files, also malformed ones."""
import gzip
import io
import struct
import zipfile

import numpy as np
import pytest
import tt
from tt import files
from tt.ao.quantization import quantize_blockwise

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def written(tmp_path, data, name="array.npy"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode()
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + version + length + text + data


def test_npy(tmp_path):
    path = tmp_path / "a.npy"
    for dtype in DTYPES:
        for order in "<>":
            whole = (np.arange(24) % 2 if dtype == "bool" else np.arange(24)).astype(dtype)
            for array in (whole, whole.reshape(2, 3, 4), whole.reshape(4, 6).T, whole[:1].sum()):
                array = np.asarray(array, np.dtype(dtype).newbyteorder(order))
                np.save(path, array)
                t = files.npy_load(path)
                assert t.dtype.name == dtype and tuple(t.shape) == array.shape
                assert t.tolist() == array.tolist(), (dtype, order)
    np.save(path, np.zeros((0, 3), "float32"))
    assert files.npy_load(path).shape == (0, 3)
    assert files.npy_load(str(path)).stride() == (3, 1)


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "does not begin like"),
        (b"\x93NUMPX\x01\x00\x00\x00", "does not begin like"),
        (b"\x93NUMPY\x09\x00\x00\x00", "version"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "exceeds the file"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", b"\0" * 7), "ends before"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}"), "overflow"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), "overflow"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "overflow"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "size"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 65 + ")}"), "64 dimensions"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}"), "Python objects"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), "records"),
        (npy("{'descr': '<f3', 'fortran_order': False, 'shape': ()}"), "no dtype"),
        (npy("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"), "True or False"),
        (npy("{'descr': '<f4', 'shape': ()}"), "lacks"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 'more': 1}"), "expected a size"),
        (npy("{'descr': '<f4"), "does not end"),
        (npy("{'evil': __import__('os')}"), "unexpected key"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", b"\0" * 4, b"\x02\x00"), None),
    ],
)  # fmt: skip
def test_malformed_npy(tmp_path, data, reason):
    path = written(tmp_path, data)
    if reason is None:
        assert files.npy_load(path).tolist() == [0.0]
        return
    with pytest.raises(tt.errors.FormatError, match=reason):
        files.npy_load(path)


def test_npy_cut_anywhere(tmp_path):
    file = io.BytesIO()
    np.save(file, np.arange(5))
    whole = file.getvalue()
    for n in range(len(whole)):
        with pytest.raises(tt.errors.FormatError):
            files.npy_load(written(tmp_path, whole[:n]))


def test_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(6.0).reshape(2, 3), y=np.array([True, False]), z=np.array(7))
    loaded = files.npz_load(path)
    assert list(loaded) == ["x", "y", "z"] and loaded["z"].item() == 7
    assert loaded["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["y"].dtype is tt.bool
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        broken = written(tmp_path, whole[:at], "b.npz")
        with pytest.raises(tt.errors.FormatError):
            files.npz_load(broken)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.txt", "1")
    with pytest.raises(tt.errors.FormatError, match="no .npy file"):
        files.npz_load(path)
    with pytest.raises(OSError):
        files.npz_load(tmp_path / "missing.npz")


def test_compressed_npz(tmp_path):
    path = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    arrays = {
        "zeros": np.zeros((300, 100)),
        "noise": rng.standard_normal(5000),
        "steps": np.arange(20000).reshape(4, 5000),
        "words": rng.integers(0, 7, 3000).astype("uint8"),
        "empty": np.zeros((0, 3), "float32"),
    }
    np.savez_compressed(path, **arrays)
    loaded = files.npz_load(path)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert np.array_equal(loaded[name].numpy(), array), name
    for method, level in ((zipfile.ZIP_STORED, 0), (zipfile.ZIP_DEFLATED, 1)):
        with zipfile.ZipFile(path, "w", method, compresslevel=level) as archive:
            archive.writestr("x.npy", npy_of(arrays["words"]))
        assert files.npz_load(path)["x"].tolist() == arrays["words"].tolist()


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_damaged_compressed_files(tmp_path):
    path = tmp_path / "a.npz"
    array = np.arange(60) % 7
    np.savez_compressed(path, x=array)
    whole = path.read_bytes()
    begin = whole.index(b"x.npy") + len("x.npy")
    end = whole.index(b"PK\1\2")
    for at in range(begin, end):
        for bit in (1, 0x80):
            damaged = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
            try:
                loaded = files.npz_load(written(tmp_path, damaged, "b.npz"))
            except tt.errors.FormatError:
                continue
            assert loaded["x"].tolist() == array.tolist(), at  # in the extra field of the header
    sizes = whole.index(b"PK\1\2") + 20  # stored size, size
    for stored, size in ((0, 0), (1, 1 << 30), (end, 608), (20, 609), (20, 607)):
        changed = whole[:sizes] + struct.pack("<II", stored, size) + whole[sizes + 8 :]
        with pytest.raises(tt.errors.FormatError):
            files.npz_load(written(tmp_path, changed, "b.npz"))


def test_idx_of_gzip(tmp_path):
    array = np.arange(2400).reshape(20, 30, 4).astype("uint8")
    data = bytes([0, 0, 8, 3]) + struct.pack(">3I", *array.shape) + array.tobytes()
    named = io.BytesIO()
    with gzip.GzipFile("a name", "wb", fileobj=named) as file:
        file.write(data)
    for packed in (gzip.compress(data), named.getvalue(), gzip.compress(data, 0)):
        loaded = files.idx_load(written(tmp_path, packed, "a.idx.gz"))
        assert loaded.tolist() == array.tolist()
    for n in range(0, len(packed), 9):
        with pytest.raises(tt.errors.FormatError):
            files.idx_load(written(tmp_path, packed[:n], "b.idx.gz"))
    for broken, reason in (
        (packed[:3] + b"\x80" + packed[4:], "kind of the compression"),
        (packed[:-8] + b"\0\0\0\0" + packed[-4:], "checksum"),
        (packed[:-4] + b"\1\0\0\0", "longer"),
        (packed[:-4] + b"\xff\xff\xff\xff", "larger than it can be"),
        (packed[:-8] + b"\0" + packed[-8:], "follow"),
    ):
        with pytest.raises(tt.errors.FormatError, match=reason):
            files.idx_load(written(tmp_path, broken, "b.idx.gz"))


def test_idx(tmp_path):
    codes = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}
    for dtype, code in codes.items():
        array = np.arange(24).reshape(2, 3, 4).astype(dtype)
        head = bytes([0, 0, code, 3]) + struct.pack(">3I", *array.shape)
        data = head + array.astype(array.dtype.newbyteorder(">")).tobytes()
        t = files.idx_load(written(tmp_path, data, "a.idx"))
        assert t.dtype.name == dtype and t.tolist() == array.tolist()
        for n in range(len(data)):
            with pytest.raises(tt.errors.FormatError):
                files.idx_load(written(tmp_path, data[:n], "b.idx"))
        with pytest.raises(tt.errors.FormatError, match="goes on"):
            files.idx_load(written(tmp_path, data + b"\0", "b.idx"))
    for data, reason in (
        (b"\x1f\x8b\x08\x00", "ends early"),
        (b"\0\1\x08\1", "does not begin"),
        (b"\0\0\x07\0", "type"),
        (b"\0\0\x08\xff", "64 dimensions"),
        (b"\0\0\x0e\3" + b"\xff" * 12, "overflow"),
    ):
        with pytest.raises(tt.errors.FormatError, match=reason):
            files.idx_load(written(tmp_path, data, "c.idx"))


def test_csv(tmp_path):
    def load(text, **options):
        return files.csv_load(written(tmp_path, text.encode(), "a.csv"), **options)

    assert load("1,2\n3,4\n").tolist() == [[1, 2], [3, 4]]
    assert load("\ufeffa;b\r\n 1.5 ;-2e3\r\n\r\nnan;inf", delimiter=";", skip_rows=1).tolist()[
        0
    ] == [1.5, -2000.0]
    assert load("9007199254740993,-5", dtype=tt.int64).tolist() == [[9007199254740993, -5]]
    digits = [0.1, 0.30000000000000004, 1e-320, 1.7976931348623157e308, 123456789.12345679]
    assert load(",".join(map(repr, digits)), dtype=tt.float64).tolist() == [digits]
    assert load("1\t0", delimiter="\t", dtype=tt.bool).tolist() == [[True, False]]
    assert load("").shape == (0, 0) and load("1").dtype is tt.float32
    for text, options, reason in (
        ("1,2\n3", {}, "line 2: the line has 1 fields, the first row 2"),
        ("1,x", {}, "line 1, field 2: it is no number"),
        ("1,,2", {}, "line 1, field 2: it is empty"),
        ("1\n0x10", {}, "line 2, field 1"),
        ("1.5", {"dtype": tt.int32}, "no integer"),
        ("300", {"dtype": tt.uint8}, "does not fit"),
        ("99999999999999999999999", {"dtype": tt.int64}, "64 bits"),
        ("1" * 5000, {}, "no number"),
        ('"1","2"', {}, "no number"),
    ):
        with pytest.raises(tt.errors.FormatError, match=reason):
            load(text, **options)
    for options in ({"delimiter": ""}, {"delimiter": "ab"}, {"skip_rows": -1}):
        with pytest.raises(ValueError):
            load("1", **options)
    with pytest.raises(tt.errors.DtypeError):
        load("1", dtype=tt.complex64)


# ---- GGUF ----


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text


def gguf(tensors, pairs, version=3):
    """A file of tensors (name, sizes as in the file, type, bytes) and pairs (key, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += gguf_text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, sizes, kind, content in tensors:
        head += gguf_text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", kind, len(data))
        data += content + b"\0" * (-len(content) % 32)
    return head + b"\0" * (-len(head) % 32) + data


def test_gguf(tmp_path):
    numbers = np.arange(6, dtype="<f4").reshape(2, 3)
    # q4_k: d = 1, m = 0.5, factors 3 and 1 of the first four runs of 32 numbers and 2 and 1 of the
    # others, nibbles 3.
    factors = bytes([3] * 4 + [1] * 4 + [0x12] * 4)
    block = np.array([1, 0.5], "<f2").tobytes() + factors + b"\x33" * 128
    weight = tt.randn(5, 64)
    packed = quantize_blockwise(weight, "q4_0")
    pairs = [
        (b"general.name", 8, gguf_text("ä".encode())),
        (b"nan", 6, struct.pack("<f", float("nan"))),
        (b"tokens", 9, struct.pack("<IQ", 8, 2) + gguf_text(b"a") + gguf_text(b"\0")),
        (b"big", 10, struct.pack("<Q", 2**64 - 1)),
    ]
    tensors = [
        (b"numbers", (3, 2), 0, numbers.tobytes()),
        (b"halves", (3, 2), 1, numbers.astype("<f2").tobytes()),
        (b"packed", (64, 5), 2, packed.numpy().tobytes()),
        (b"k", (256, 2), 12, block * 2),
    ]
    path = written(tmp_path, gguf(tensors, pairs, 2), "a.gguf")
    for mmap in (False, True):
        f = files.gguf_load(path, mmap)
        assert f.version == 2
        assert [f.types[name] for name in ("numbers", "halves", "packed")] == ["f32", "f16", "q4_0"]
        assert f.metadata["general.name"] == "ä" and f.metadata["big"] == 2**64 - 1
        assert f.metadata["tokens"] == ["a", "\0"] and np.isnan(f.metadata["nan"])
        assert f.tensors["numbers"].tolist() == numbers.tolist()
        assert f.tensors["halves"].dtype is tt.float16
        assert f.tensors["packed"].tolist() == packed.tolist()
        layer = tt.ao.quantization.BlockwiseLinear(f.tensors["packed"], format=f.types["packed"])
        assert f.types["k"] == "q4_k" and f.tensors["k"].shape == (2, 144)
        of_k = tt.ao.quantization.BlockwiseLinear(f.tensors["k"], format=f.types["k"])
        assert of_k(tt.ones(1, 256)).tolist() == [[128.0 * 9 + 128.0 * 6 - 256 * 0.5] * 2]
        want = weight @ weight.T
        assert float((layer(weight) - want).abs().max()) < 0.2 * float(want.abs().max())
    with pytest.raises(tt.errors.FormatError, match="byte"):
        files.gguf_load(written(tmp_path, gguf(tensors, pairs)[:-20], "b.gguf"))
    with pytest.raises(tt.errors.FormatError, match="does not begin with GGUF"):
        files.gguf_load(written(tmp_path, b"GGML" + b"\0" * 40, "c.gguf"))
