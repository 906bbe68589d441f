"""Settings of a session: options and config entries that a recipe writes, and how they apply."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.params import from_json, option, to_json
from onnxbuild.onnxkit.reports import write_report

TUNED = (
    "intra_op_threads", "inter_op_threads", "spinning", "execution_mode", "cpu_arena",
    "memory_pattern",
)  # fmt: skip
"""The settings that change nothing but time and memory: those that `tune` searches."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a variant's ONNX Runtime session; what is left out is as ONNX Runtime has it."""

    graph_optimization: Literal["disable", "basic", "extended", "all"] = option(
        "all", help="graph optimizations at load time; `all` includes those for this CPU"
    )
    execution_mode: Literal["sequential", "parallel"] = option(
        "sequential",
        help="whether operators that don't wait for each other run side by side, on "
        "`inter_op_threads`",
    )
    intra_op_threads: int = option(
        0, help="threads within an operator; 0: one for each core", minimum=0
    )
    inter_op_threads: int = option(
        0,
        help="threads across operators, where they run in parallel; 0: one for each core",
        minimum=0,
    )
    spinning: Literal["allow", "stop", "never"] = option(
        "allow",
        help="idle threads: `allow` spins, also for some 35 ms after a run; `stop` "
        "ends spinning with the run; `never` sleeps at once",
    )
    memory_pattern: bool = option(
        True, help="plan the memory of all activations at once, for each shape of the inputs"
    )
    cpu_arena: bool = option(True, help="keep the memory of a run for the next")
    deterministic_compute: bool = option(
        False, help="use only kernels with the same result in every run"
    )
    free_dimensions: dict[str, int] = field(
        default_factory=dict,
        metadata={
            "help": "axis of `dynamic_axes` -> the one size that the session takes, known when it "
            "fuses the graph",
            "minimum": 1,
        },
    )
    config: dict[str, str | int] = field(
        default_factory=dict,
        metadata={"help": "additional session config entries of ONNX Runtime: key -> value"},
    )

    @property
    def spins(self) -> bool:
        """Whether threads may go on spinning when a run is over."""
        alone = self.intra_op_threads == 1 and self.execution_mode == "sequential"
        return self.spinning == "allow" and not alone

    def judged(self) -> SessionSettings:
        """Return settings for gates: what can change numbers, on one thread, for equal reports."""
        return dataclasses.replace(
            self,
            intra_op_threads=1,
            inter_op_threads=1,
            spinning="allow",
            memory_pattern=True,
            cpu_arena=True,
            deterministic_compute=True,
        )

    def judged_anywhere(self) -> SessionSettings:
        """Return settings as `judged` does, without fixed axis sizes, for the user's own data."""
        return dataclasses.replace(self.judged(), free_dimensions={})

    def threaded(self, threads: int) -> SessionSettings:
        """Return settings with a number of intra-op threads, if they leave that open."""
        return dataclasses.replace(self, intra_op_threads=self.intra_op_threads or threads)

    def tuned_text(self) -> str:
        """The settings of TUNED as JSON: what a lock records."""
        return json.dumps({name: getattr(self, name) for name in TUNED})

    def with_tuned(self, text: str) -> SessionSettings:
        """Return these settings with those of TUNED as `tuned_text` has written them.

        Raises:
            ValueError: It is no such text.
        """
        parsed = json.loads(text)
        if not isinstance(parsed, dict) or set(parsed) != set(TUNED):
            raise ValueError(f"found {text}; expected the keys {', '.join(TUNED)}")
        return from_json(SessionSettings, {**to_json(self), **parsed})


STEADY = SessionSettings().judged()
"""One thread, the same sums each time."""


def settings_from(value: Any) -> SessionSettings:
    """Read settings that `to_json` has written.

    Raises:
        ValueError: It is something else.
    """
    return from_json(SessionSettings, value, "session")


def shown(settings: SessionSettings, base: SessionSettings | None = None) -> str:
    """Return what differs from other settings (None: ONNX Runtime's own), as YAML to paste."""
    other = SessionSettings() if base is None else base
    parts = [
        f"{each.name}: {_yaml(getattr(settings, each.name))}"
        for each in dataclasses.fields(settings)
        if getattr(settings, each.name) != getattr(other, each.name)
    ]
    return f"{{{', '.join(parts)}}}"


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_yaml(each)}' for key, each in value.items())}}}"
    return str(value)


_FILE = "session.json"


def write_settings(folder: Path, settings: SessionSettings) -> None:
    """Write an artifact that `read_settings` reads."""
    write_report(folder, to_json(settings), _FILE)


def read_settings(folder: Path) -> SessionSettings:
    """The settings in a session artifact."""
    return settings_from(json.loads((folder / _FILE).read_text("utf-8")))


Question = Literal["threads", "spinning", "execution_mode", "memory"]


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """A search for settings that are faster than the recipe's."""

    max_time_s: float = option(
        60.0, help="seconds of measuring, about; a quarter is for proving the winner", minimum=1
    )
    search: tuple[Question, ...] = option(
        ("threads", "spinning", "execution_mode", "memory"), help="what is varied, in this order"
    )


@dataclass(frozen=True, slots=True)
class SessionOptions(SessionSettings):
    """Session settings of a variant, where it is measured and in the bundle's load.py."""

    profiling: bool = option(
        False, help="write ONNX Runtime's profile of the variant next to it (profile.json)"
    )
    tune: bool | TuneOptions = option(
        False,
        help="search threads, spinning, execution mode and memory for what is fastest at "
        "`benchmark.points`; a lock keeps what was found",
    )

    def settings(self) -> SessionSettings:
        """The session's, without what is made of it."""
        names = [each.name for each in dataclasses.fields(SessionSettings)]
        return SessionSettings(**{name: getattr(self, name) for name in names})

    def tuning(self) -> TuneOptions | None:
        """The search; None for none."""
        if isinstance(self.tune, TuneOptions):
            return self.tune
        return TuneOptions() if self.tune else None


OWN_KEYS: Mapping[str, str] = {
    "session.intra_op_num_threads": "intra_op_threads",
    "session.inter_op_num_threads": "inter_op_threads",
    "session.execution_mode": "execution_mode",
    "session.graph_optimization_level": "graph_optimization",
    "session.enable_mem_pattern": "memory_pattern",
    "session.enable_cpu_mem_arena": "cpu_arena",
    "session.use_deterministic_compute": "deterministic_compute",
    "session.force_spinning_stop": "spinning",
    "session.intra_op.allow_spinning": "spinning",
    "session.inter_op.allow_spinning": "spinning",
    "session.enable_profiling": "profiling",
}
"""Key -> the setting of `session` that stands for it."""

FILE_KEYS = frozenset(
    {
        "session.optimized_model_filepath",
        "session.optimized_model_external_initializers_file_name",
        "session.save_model_format",
        "session.save_external_prepacked_constant_initializers",
        "session.collect_node_memory_stats_to_file",
        "ep.context_enable",
        "ep.context_file_path",
    }
)
"""Keys that make a session write files: in a build, files are what steps give."""

KNOWN_KEYS = frozenset(
    {
        "session.allow_released_opsets_only",
        "session.disable_aot_function_inlining",
        "session.disable_cpu_ep_fallback",
        "session.disable_double_qdq_remover",
        "session.disable_prepacking",
        "session.disable_qdq_constant_folding",
        "session.disable_quant_qdq",
        "session.dynamic_block_base",
        "session.enable_dq_matmulnbits_fusion",
        "session.enable_quant_qdq_cleanup",
        "session.graph_optimizations_loop_level",
        "session.inter_op.spin_backoff_max",
        "session.inter_op.spin_duration_us",
        "session.intra_op.spin_backoff_max",
        "session.intra_op.spin_duration_us",
        "session.intra_op_thread_affinities",
        "session.load_model_format",
        "session.qdq_matmulnbits_accuracy_level",
        "session.qdq_matmulnbits_block_size",
        "session.qdqisint8allowed",
        "session.set_denormal_as_zero",
        "session.strict_shape_type_inference",
        "session.use_device_allocator_for_initializers",
        "session.use_env_allocators",
        "session.x64quantprecision",
        "optimization.disable_specified_optimizers",
        "optimization.enable_cast_chain_elimination",
        "optimization.enable_gelu_approximation",
        "mlas.disable_kleidiai",
        "mlas.qnbit.force_fp32",
        "mlas.use_lut_gemm",
        "mlas.enable_gemm_fastmath_arm64_bfloat16",
    }
)

LOAD_KEYS = frozenset({"session.enable_saved_runtime_optimizations"})
"""Keys that steps write into what they make ahead of time; no recipe needs them."""

FREE_PREFIXES = ("ep.", "custom_op.")
"""Prefixes of keys that only a provider or a library of custom operators knows: `ep.NAME.KEY`,
`custom_op.NAME.KEY`."""

_FREE_PARTS = 3


def is_free(key: str) -> bool:
    """Return whether a key is one of a provider or of a custom operator, and can't be checked."""
    return key.startswith(FREE_PREFIXES) and len([p for p in key.split(".") if p]) >= _FREE_PARTS
