# SPDX-License-Identifier: Apache-2.0
# Rendered from etrace/spec/database.toml by `make generate`: do not edit.
# The columns of an open image as C sees them: the one place that takes addresses out of an image.
from libetrace.core.types cimport s16, s32, s64, u8, u32, u64

# The first element, NULL when the image has no such table, and how many there are.
cdef struct U1:
    const u8 *at
    u64 n

cdef struct S2:
    const s16 *at
    u64 n

cdef struct U4:
    const u32 *at
    u64 n

cdef struct S4:
    const s32 *at
    u64 n

cdef struct U8:
    const u64 *at
    u64 n

cdef struct S8:
    const s64 *at
    u64 n


cdef class Columns:
    cdef list views  # keep the columns where they are
    cdef U8 strings_start
    cdef U1 strings_bytes
    cdef U4 paths_string
    cdef U1 paths_mode
    cdef S8 paths_size
    cdef U8 paths_opens_start
    cdef U4 path_opens_open
    cdef S8 executions_upid
    cdef S4 executions_index
    cdef S8 executions_start_ns
    cdef S8 executions_elapsed_ns
    cdef S4 executions_parent
    cdef S4 executions_binary
    cdef U4 executions_cwd
    cdef S2 executions_status
    cdef U8 executions_argv_start
    cdef U8 executions_opens_start
    cdef U8 executions_children_start
    cdef U8 executions_inherited_start
    cdef U8 executions_readers_start
    cdef U8 executions_cpus_start
    cdef U4 arguments_string
    cdef U4 opens_path
    cdef U4 opens_original
    cdef S8 opens_open_ns
    cdef S8 opens_close_ns
    cdef U1 opens_mode
    cdef S8 opens_size
    cdef U4 opens_execution
    cdef S8 opens_until_ns
    cdef U4 changes_open
    cdef U1 changes_kind
    cdef S8 changes_time_ns
    cdef S4 changes_name
    cdef U4 inherited_path
    cdef U4 inherited_execution
    cdef U1 inherited_descriptor
    cdef U1 inherited_mode
    cdef S8 children_upid
    cdef U8 children_flags
    cdef S4 children_execution
    cdef U4 pipe_readers_execution
    cdef U4 cpus_cpu
    cdef S8 cpus_time_ns
    cdef S8 environment_upid
    cdef U4 environment_string
    cdef S4 mounts_execution
    cdef S8 mounts_time_ns
    cdef U1 mounts_kind
    cdef S4 mounts_source
    cdef S4 mounts_target
    cdef S4 mounts_type
    cdef U8 mounts_flags
    cdef U1 mounts_ok
    cdef U8 added_strings_start
    cdef U1 added_strings_bytes
    cdef S8 response_files_upid
    cdef U4 response_files_path
    cdef U4 response_files_content
    cdef U4 hashes_path
    cdef U1 hashes_state
    cdef S8 hashes_size
    cdef S4 hashes_sha256
    cdef S4 hashes_git_blob
    cdef S8 usage_user_ns
    cdef S8 usage_system_ns
    cdef S8 usage_max_rss_bytes
    cdef S8 usage_rchar_bytes
    cdef S8 usage_wchar_bytes
    cdef S8 usage_n_voluntary_switches
    cdef S8 usage_n_forced_switches
    cdef U4 written_execution
    cdef U1 written_descriptor
    cdef S8 written_cut_bytes
    cdef U4 written_string
    cdef U4 open_uses_open
    cdef S8 open_uses_begin_ns
    cdef S8 open_uses_end_ns
    cdef U1 open_uses_mode
    cdef S8 fork_times_time_ns
    cdef U4 linked_execution
    cdef U4 linked_path
    cdef U1 linked_type
    cdef U1 linked_kind
    cdef U4 compilations_execution
    cdef U4 compilations_language
    cdef U1 compilations_type
    cdef U1 compilations_is_child
    cdef U8 compilations_files_start
    cdef U8 compilations_includes_start
    cdef U8 compilations_definitions_start
    cdef U8 compilations_headers_start
    cdef U8 compilations_objects_start
    cdef U4 compilation_files_string
    cdef U4 compilation_includes_string
    cdef U4 compilation_definitions_name
    cdef U4 compilation_definitions_value
    cdef U1 compilation_definitions_is_undef
    cdef U4 compilation_headers_string
    cdef U4 compilation_objects_path
    cdef U4 unread_response_files_execution
    cdef U4 unread_response_files_string
    cdef S4 wrappers_execution
    cdef U4 rule_runs_execution
    cdef S4 rule_runs_rules
    cdef S4 rule_runs_reason
    cdef U1 rule_sets_tool
    cdef U4 rule_sets_directory
    cdef U1 rule_sets_is_serial
    cdef S4 rule_sets_default_goal
    cdef U8 rule_sets_files_start
    cdef U8 rule_sets_edges_start
    cdef U4 rule_files_string
    cdef U1 rule_files_kind
    cdef U1 rule_edges_is_target
    cdef U1 rule_edges_is_phony
    cdef U1 rule_edges_is_always
    cdef U1 rule_edges_is_intermediate
    cdef U1 rule_edges_has_recipe
    cdef S4 rule_edges_stem
    cdef U8 rule_edges_outputs_start
    cdef U8 rule_edges_prerequisites_start
    cdef U8 rule_edges_lines_start
    cdef U4 rule_outputs_string
    cdef U4 rule_prerequisites_string
    cdef U1 rule_prerequisites_kind
    cdef U4 rule_lines_string
    cdef U4 targets_tool
    cdef U1 targets_kind
    cdef S4 targets_outer
    cdef U8 targets_names_start
    cdef U4 target_names_string
    cdef S4 execution_targets_target
    cdef U4 patterns_string
    cdef U1 pattern_bits_bits
    cdef S8 graph_uses_begin_ns
    cdef S8 graph_uses_end_ns
    cdef U4 graph_others_path
    cdef U4 graph_others_execution
    cdef U4 graph_others_process
    cdef U1 graph_others_kind
    cdef U4 graph_executions_process
    cdef U8 graph_paths_writes_start
    cdef U8 graph_paths_reads_start
    cdef U8 graph_paths_ends_start
    cdef U4 graph_paths_last
    cdef S4 graph_paths_first
    cdef U1 graph_paths_uses
    cdef U8 graph_processes_reads_start
    cdef U8 graph_processes_writes_start
    cdef U8 graph_processes_sources_start
    cdef U8 graph_processes_targets_start
    cdef U4 path_writes_use
    cdef U4 path_reads_use
    cdef U4 process_reads_use
    cdef U4 process_writes_use
    cdef S8 path_ends_time_ns
    cdef U1 path_ends_is_away
    cdef U4 pipe_sources_own
    cdef U4 pipe_sources_other
    cdef U4 pipe_sources_process
    cdef S8 pipe_sources_time_ns
    cdef U4 pipe_targets_own
    cdef U4 pipe_targets_other
    cdef U4 pipe_targets_process
    cdef S8 pipe_targets_time_ns

    cdef int fill(self, image, tables, bint is_checked) except -1
    cdef int take(self, int number, path, str name, column, str dtype) except -1

# The first place in an ascending column with this row or a later one.
cdef u64 first_of(U4 rows, u64 row) noexcept nogil
