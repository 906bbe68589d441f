"""ONNX Runtime's session config entries: which there are, and which a recipe says in another way.

ONNX Runtime takes any key in silence, so a misspelled one does nothing. The keys are those of its header
onnxruntime_session_options_config_keys.h; a test finds each in the library that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

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
