"""Random inputs: the distribution that is asked for, the same bits for the same draw, and nothing that repeats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from opratchet.backend.base import TensorSpec
from opratchet.lab.pool import Pool
from opratchet.lab.tensors import Array, numpy_dtype
from opratchet.operator.model import InputSpec


def draws(dtype: str, wanted: InputSpec, count: int = 20_000, seed: int = 0) -> tuple[Pool, Array]:
    pool = Pool(TensorSpec("X", (count,), dtype), wanted, np.random.default_rng(seed))
    out: Array = np.empty(count, numpy_dtype(dtype))
    pool.write(pool.draw(), out)
    return pool, out


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (-3.0, 0.25)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_mix_of_normals_is_normal(dtype: str, mean: float, deviation: float) -> None:
    _pool, values = draws(dtype, InputSpec("normal", mean, deviation))
    assert stats.kstest((values.astype(float) - mean) / deviation, "norm").pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mix_of_uniforms_is_uniform_and_keeps_to_its_range(dtype: str) -> None:
    _pool, values = draws(dtype, InputSpec("uniform", -2.0, 6.0))
    assert stats.kstest((values.astype(float) + 2) / 8, "uniform").pvalue > 1e-4
    assert (values >= -2).all()
    assert (values <= 6).all()


@given(low=st.integers(-100, 100), width=st.integers(1, 27), seed=st.integers(0, 9))
def test_integers_keep_to_their_range_and_reach_all_of_it(low: int, width: int, seed: int) -> None:
    _pool, values = draws("int8", InputSpec("uniform", low, low + width), 5000, seed)
    assert set(values.tolist()) == set(range(low, low + width))


def test_the_same_draw_gives_the_same_bits() -> None:
    pool, values = draws("float32", InputSpec())
    drawn = pool.draw()
    first, second = np.empty_like(values), np.empty(values.size + 3, np.float32)[3:]
    pool.write(drawn, first)
    pool.write(drawn, second)
    assert first.tobytes() == second.tobytes()


def test_no_stretch_of_an_input_returns_in_another() -> None:
    """Also not shifted or scaled: the differences of neighbours correlate with those of no other input, at no shift."""
    pool, values = draws("float32", InputSpec(), 4096)
    other = np.empty_like(values)
    pool.write(pool.draw(), other)
    spectrum = np.fft.rfft(values, 8192).conj() * np.fft.rfft(other, 8192)
    correlation = np.abs(np.fft.irfft(spectrum)) / np.linalg.norm(values) / np.linalg.norm(other)
    assert correlation.max() < 0.999
