"""Random numbers and modes of several threads: each has its own, and a seed repeats them all."""
import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tt
from tt import quasirandom

BINDING = Path(tt.__file__).parents[1]
DRAW_IN_A_PROCESS = """
import threading, tt
{seed}
found = [tt.rand(4).tolist()]
thread = threading.Thread(target=lambda: found.append(tt.rand(4).tolist()))
thread.start()
thread.join()
print(found)
"""


def mask():
    """The dropout mask that this thread draws next."""
    return tuple(tt.nn.functional.dropout(tt.ones(64)).tolist())


def in_a_thread(function):
    """What function gives on a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def in_a_process(seed):
    env = {**os.environ, "PYTHONPATH": str(BINDING)}
    command = [sys.executable, "-c", DRAW_IN_A_PROCESS.format(seed=seed)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_threads_draw_different_masks_at_once():
    found, together = [], threading.Barrier(3)

    def work():
        together.wait()
        found.append(mask())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 and len({*found, mask()}) == 4


def test_a_seed_repeats_the_streams_of_threads_in_the_order_in_which_they_come():
    def round_of(seed):
        tt.manual_seed(seed)
        return [mask(), *(in_a_thread(mask) for _ in range(3))]

    first = round_of(3)
    assert round_of(3) == first and len(set(first)) == 4
    assert not set(round_of(4)) & set(first)


def test_a_seed_does_not_change_threads_that_draw_already():
    go, found = threading.Event(), []

    def work():
        found.append(tt.get_rng_state().tolist())
        started.set()
        go.wait()
        found.append(tt.get_rng_state().tolist())

    started = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    tt.manual_seed(5)
    go.set()
    thread.join()
    assert found[0] == found[1]


def test_a_thread_draws_as_a_generator_with_its_initial_seed():
    def work():
        seed = tt.initial_seed()
        return seed, tt.rand(5).tolist(), tt.rand(5, generator=tt.Generator(seed)).tolist()

    tt.manual_seed(6)
    seed, drawn, want = in_a_thread(work)
    assert drawn == want and seed != tt.initial_seed() == 6
    state = in_a_thread(lambda: (tt.rand(1), tt.get_rng_state().tolist())[1])
    assert state[1] > 0


def test_fork_rng_restores_the_seed_of_new_threads():
    tt.manual_seed(1)
    want = [in_a_thread(mask) for _ in range(2)]
    tt.manual_seed(1)
    first = in_a_thread(mask)
    with tt.random.fork_rng():
        tt.manual_seed(99)
        inside = [in_a_thread(mask) for _ in range(2)]
    assert [first, in_a_thread(mask)] == want and not set(inside) & set(want)


def test_fork_rng_without_a_seed_repeats_no_thread():
    with tt.random.fork_rng():
        inside = in_a_thread(mask)
    assert in_a_thread(mask) != inside


def test_processes_draw_different_numbers_unless_they_seed():
    assert in_a_process("") != in_a_process("")
    assert in_a_process("tt.manual_seed(2)") == in_a_process("tt.manual_seed(2)")


def test_no_grad_is_a_mode_of_one_thread():
    with tt.no_grad():
        assert not tt.is_grad_enabled() and in_a_thread(tt.is_grad_enabled)
    assert in_a_thread(lambda: tt.no_grad(tt.is_grad_enabled)()) is False and tt.is_grad_enabled()


# ---- Sobol sequences ----


@pytest.fixture
def small_table(monkeypatch):
    """The first four coordinates of Joe and Kuo's direction numbers."""
    polynomials = tt.tensor([1, 3, 7, 11])
    initial = tt.tensor([[1, 0, 0], [1, 0, 0], [1, 3, 0], [1, 3, 1]])
    monkeypatch.setattr(quasirandom, "table", lambda: (polynomials, initial))


def test_sobol_points_are_pytorchs(small_table):
    engine = quasirandom.SobolEngine(4)
    first = [[0, 0, 0, 0], [8, 8, 8, 8], [12, 4, 4, 4], [4, 12, 12, 12], [6, 6, 10, 14]]
    assert (engine.draw(5) * 16).tolist() == first
    assert (engine.draw() * 16).tolist() == [[14, 14, 2, 6]]
    points = engine.fast_forward(1000).draw(2, dtype=tt.float64)
    assert (points * 1024).tolist() == [[609, 227, 403, 53], [97, 739, 915, 565]]
    assert engine.quasi.tolist() == [101711872, 774897664, 959447040, 592445440]
    assert engine.num_generated == 1008 and repr(engine) == "SobolEngine(dimension=4)"
    out = tt.empty(0)
    assert engine.reset().draw(2, out) is out and (out * 16).tolist() == first[:2]
    assert engine.reset().draw_base2(3).shape == (8, 4)


def test_scrambled_points_fill_the_cube_evenly(small_table):
    engine = quasirandom.SobolEngine(4, scramble=True, seed=5)
    points = engine.draw(64)
    for coordinate in points.unbind(1):
        assert (coordinate * 64).floor().sort().values.tolist() == list(range(64))
    assert tt.equal(points, quasirandom.SobolEngine(4, True, 5).draw(64))
    assert not tt.equal(points, quasirandom.SobolEngine(4, True, 6).draw(64))


def test_what_sobol_engines_refuse(small_table, monkeypatch):
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=f"dimension is {dimension}: must be from 1 to 21201"):
            quasirandom.SobolEngine(dimension)
    engine = quasirandom.SobolEngine(2)
    with pytest.raises(NotImplementedError, match="dtype is tt.float16: must be float32"):
        engine.draw(dtype=tt.float16)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"3 points have been drawn, with 2\*\*2 more there are 7"):
        engine.draw_base2(2)
    monkeypatch.undo()
    monkeypatch.setattr(quasirandom, "find_spec", lambda name: None)
    quasirandom.table.cache_clear()
    with pytest.raises(ImportError, match="install SciPy"):
        quasirandom.SobolEngine(2)


def test_sobol_points_with_scipys_table():
    pytest.importorskip("scipy", reason="SciPy is not installed")
    quasirandom.table.cache_clear()
    engine = quasirandom.SobolEngine(21201)
    assert engine.sobolstate[-1, -3:].tolist() == [906168668, 56201214, 254952011]


def test_seeds_may_be_floats():
    assert tt.manual_seed(3.7).initial_seed() == 3


def test_bernoulli_in_place():
    certain = tt.tensor([0.0, 1.0, 1.0])
    x = tt.empty(2, 3, dtype=tt.int64)
    assert x.bernoulli_(certain) is x and x.tolist() == [[0, 1, 1]] * 2
    assert 400 < tt.empty(1000).bernoulli_().sum().item() < 600
    assert tt.empty(2).bernoulli_(1).tolist() == [1, 1]


def test_generators_are_copied_and_pickled():
    g = tt.Generator().manual_seed(5)
    tt.rand(3, generator=g)
    twins = [copy.deepcopy(g), pickle.loads(pickle.dumps(g))]
    expected = tt.rand(4, generator=g)
    for twin in twins:
        assert tt.equal(tt.rand(4, generator=twin), expected)
        assert twin.initial_seed() == 5 and twin.device == g.device


def test_random_from_a_number_on():
    x = tt.zeros(1000, dtype=tt.int8)
    assert 100 <= x.random_(100, None).min() and x.max() > 110
    assert x.random_(5).max() < 5 and x.random_(to=5).max() < 5
    assert 2 <= x.random_(2, 5).min() and x.max() < 5
    assert 100 <= x.random_(**{"from": 100}).min()
    assert tt.zeros(10, dtype=tt.int64).random_(2**62, None).min() >= 2**62


def test_rates_of_poisson_are_not_negative():
    for rate in (-1.0, float("nan")):
        with pytest.raises(RuntimeError, match="rate"):
            tt.poisson(tt.tensor([1.0, rate]))
    assert tt.poisson(tt.zeros(3)).tolist() == [0, 0, 0] and tt.poisson(tt.zeros(0)).shape == (0,)
