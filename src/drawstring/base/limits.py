"""Limits: from what size on something is done in another way, and how much is held in memory at a time.

A limit changes how work is done and in what sizes, never which rows a table has. Therefore a limit belongs to
the process and not to a table, and is no option. A module reads a limit where it needs it,
`limits.in_force.files_open_max`, without a call, as these are hot paths.

Tests set limits with `drawstring.testing.with_limits`, so that few rows meet what many rows meet elsewhere.
Workers in other processes have the default limits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a process.

    Attributes:
        batch_bytes: bytes that the rows of a batch take when it is read, which holds fewer rows if they are
            wide.
        sorted_batch_rows: rows of a batch of a merge of sorted files.
        read_ahead_bytes: largest uncompressed size of small row groups that are read together.
        remote_read_bytes_min: least number of bytes that are fetched of a remote file at a time.
        local_copy_bytes_max: size up to which even a local Parquet file is fetched at once: of a larger one a
            query needs few columns.
        part_whole_bytes_max: size up to which a Parquet file within another file is read at once instead of
            column by column.
        expanded_bytes_max: largest size of the decoded texts of a batch, unless it has a single row.
        matched_bytes_max: bytes of columns of the condition that are kept for the rows that match; of more
            they are decoded again.
        lance_gathered_bytes: bytes of rows that the Lance writer gathers before it writes pages, those of all
            columns together.
        hfile_block_bytes_max: largest size of a data block of an HFile; a longer entry gets a block of its
            own.
        avro_columns_rows_min: datums of an Avro block from which on they are decoded by columns.
        avro_single_values_max: numbers that are encoded in Avro one by one, which is faster than by kernels.
        delete_columns_records_min: records of a delete block from which on they are decoded by columns.
        files_open_max: log files of a slice that stay open; some systems give a process 256, of all its
            slices and threads.
        log_records_bytes_max: total size of the log files of a slice up to which their records are held in
            memory.
        windows_bytes: bytes that the windows of all log files of a slice may have together, as far as it can
            be estimated.
        base_window_bytes: bytes of a window of a base file, from which on it ends.
        staged_bytes_max: decoded size of a row group, all columns together, up to which its rows are held for
            the next stage of a merge.
        text_keys_rows_max: rows of a base file up to which keys are compared as texts: taking those of the
            logs apart costs more.
        change_records_bytes_max: bytes of records that change queries cache across all slices; records beyond
            it are read again.
        patched_values_min: values (rows times columns) of a base file from which it is patched, which takes
            less time then.
        growing_group_rows_max: rows of a row group that always takes new records, if it is the last one.
        positions_max: records of a log file up to which its footer has their positions, a few bytes each:
            every reader decodes it.
        changed_keys_max: new and deleted keys of a rewritten base file up to which they travel with its
            statistics.
        copied_logs_share_max: size of the log files, as a share of that of the base file, up to which a
            compaction looks for row groups to copy.
        stitched_group_bytes_min: average bytes of a row group below which a clustering rewrites rows: tiny
            row groups slow every reader down.
        sliced_files_min: files that are sliced faster in columns than one file group after the other.
        metadata_block_bytes: bytes of records from which on a log block of the metadata table ends.
        asked_partitions_max: partitions up to which Arrow is asked about each, instead of about regions
            first.
        compared_keys_max: keys of the own write that are held in memory, by partition; beyond that they are
            not compared with those of other writers, which counts as a conflict.
        distinct_hashes_unsorted_max: new hashes that `validate` collects before it sorts them.
        piece_bytes_max: bytes of rows of one file group that a write processes at once.
        sort_bytes_max: bytes of rows up to which they are sorted by key in memory.
        share_bytes: bytes of rows of a group that are worth another thread, and so another file.
        groups_ahead_max: groups of an exchange that are known ahead.
        spark_keys_bytes_max: size of keys that are sent to the driver and to every task that reads keys of a
            table.
        spark_few_keys_bytes_max: size of keys whose matches are sent to every task instead of a shuffle.
    """

    batch_bytes: int = 16 << 20
    sorted_batch_rows: int = 65_536
    read_ahead_bytes: int = 32 << 20
    remote_read_bytes_min: int = 1 << 20
    local_copy_bytes_max: int = 64 << 10
    part_whole_bytes_max: int = 2 << 20
    expanded_bytes_max: int = 32 << 20
    matched_bytes_max: int = 32 << 20
    lance_gathered_bytes: int = 64 << 20
    hfile_block_bytes_max: int = 1 << 17
    avro_columns_rows_min: int = 24
    avro_single_values_max: int = 32
    delete_columns_records_min: int = 96
    files_open_max: int = 64
    log_records_bytes_max: int = 256 << 20
    windows_bytes: int = 64 << 20
    base_window_bytes: int = 16 << 20
    staged_bytes_max: int = 256 << 20
    text_keys_rows_max: int = 16_384
    change_records_bytes_max: int = 256 << 20
    patched_values_min: int = 120_000
    growing_group_rows_max: int = 4_096
    positions_max: int = 1 << 20
    changed_keys_max: int = 1_024
    copied_logs_share_max: float = 0.5
    stitched_group_bytes_min: int = 128 << 10
    sliced_files_min: int = 1_000
    metadata_block_bytes: int = 32 << 20
    asked_partitions_max: int = 16
    compared_keys_max: int = 1_000_000
    distinct_hashes_unsorted_max: int = 1 << 18
    piece_bytes_max: int = 128 << 20
    sort_bytes_max: int = 256 << 20
    share_bytes: int = 16 << 20
    groups_ahead_max: int = 64
    spark_keys_bytes_max: int = 32 << 20
    spark_few_keys_bytes_max: int = 16 << 20


in_force: Limits = Limits()
"""The limits of this process: only `drawstring.testing.with_limits` changes them."""
