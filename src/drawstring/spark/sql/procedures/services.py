"""Procedures that run table services, and show what they did or plan to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.expressions.predicate import parse_where
from drawstring.formats.filter import where_columns
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.formats.metadata.plans import decode_clean, decode_clean_plan, decode_clustering_plan
from drawstring.index.bucket import all_counts
from drawstring.model.instant import Action, Instant
from drawstring.services.bucket_rescaling import BucketRules, plan_rescaling, rescale_by_rules
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.sql.procedures.show import refuse_archived_cleans, rollbacks_of

_SCHEDULE: Final = "schedule"
_EXECUTE: Final = "execute"
_BOTH: Final = ("run", "scheduleandexecute")
_COMPACTION: Final = "timestamp STRING, operation_size INT, state STRING"
_CLUSTERING: Final = "timestamp STRING, input_group_size INT, state STRING, involved_partitions STRING"
_VERSION: Final = 2
_POLICY_KEYS: Final = frozenset({"hoodie.clean.policy", "hoodie.cleaner.policy"})
_NO_BOOTSTRAP: Final = "{}"
_TRIGGER: Final = "hoodie.clean.trigger.max.commits"
_REGEX: Final = "regex"
_NO_NUMBER: Final = -1
_SUCCESS: Final = "SUCCESS"


def _operation(call: Call, default: str) -> str:
    """Return what `op` says: run, schedule, execute or both."""
    if call.text("timestamp") or call.text("instants"):
        return _EXECUTE
    operation = (call.text("op") or default).lower()
    if operation not in (_SCHEDULE, _EXECUTE, *_BOTH):
        raise InvalidError(
            f"There is no op {operation}. Use schedule, execute or scheduleAndExecute (run is the same)."
        )
    return operation


def _wanted(call: Call, pending: Sequence[str]) -> list[str]:
    """Return the pending instants to run: those that are named, or all up to the limit."""
    named = call.names("instants") or [each for each in (call.text("timestamp"),) if each]
    if unknown := [each for each in named if each not in pending]:
        raise InvalidError(f"Nothing is pending at {unknown[0]}; there is {', '.join(pending) or 'nothing'}.")
    return named or list(pending)[: call.number("limit")]


def _newest_first(instants: Sequence[Instant]) -> list[Instant]:
    return sorted(instants, key=lambda each: each.requested, reverse=True)


def _instants_to_run(
    call: Call, operation: str, action: Action, schedule: Callable[[], str | None]
) -> list[str]:
    """Return the plans of a call: the one that it schedules; without one, those that are pending, to run.

    Args:
        call: the call.
        operation: what it is to do.
        action: of the plans.
        schedule: plans the action; returns its requested time, None when there is nothing to do.
    """
    scheduled = schedule() if operation != _EXECUTE else None
    if scheduled is not None:
        return [scheduled]
    if operation == _SCHEDULE:
        return []
    pending = call.table.timeline.pending_of(action)
    return _wanted(call, sorted(each.requested for each in pending))


def run_compaction(call: Call) -> Rows:
    """Schedule and run compactions."""
    operation, options = _operation(call, "run"), call.options
    done = _instants_to_run(
        call, operation, Action.COMPACTION, lambda: call.table.services.schedule_compaction(options=options)
    )
    if operation != _SCHEDULE:
        for instant in done:
            call.table.services.compact(instant, options=options)
    return [row for row in _compactions(call) if row[0] in done]


def _compactions(call: Call) -> Iterator[Sequence[Any]]:
    """Yield the compactions of the active timeline, newest first."""
    facts = call.table._calls.facts()
    pending = facts.timeline.pending_of(Action.COMPACTION)
    completed = facts.timeline.completed_of(Action.COMMIT) if facts.config.is_merge_on_read else ()
    for instant in _newest_first([*pending, *completed]):
        content = facts.store.read_requested(instant)
        if content:
            operations = decode_compaction_plan(content).operations
            yield instant.requested, len(operations), str(instant.state.name)


def show_compaction(call: Call) -> Rows:
    """Return the compactions of the active timeline, newest first."""
    return call.limited(_compactions(call))


def run_clustering(call: Call) -> Rows:
    """Schedule and run clusterings."""
    options = dict(call.options)
    if order := call.names("order"):
        options["hoodie.clustering.plan.strategy.sort.columns"] = ",".join(order)
    if strategy := call.text("order_strategy"):
        options["hoodie.layout.optimize.strategy"] = strategy
    if pattern := call.text("partition_regex_pattern"):
        options["hoodie.clustering.plan.strategy.partition.regex.pattern"] = pattern
    partitions = call.names("selected_partitions")
    if predicate := call.text("predicate"):
        partitions = _partitions_where(call, predicate)
        if not partitions:
            return []
    operation, chosen = _operation(call, "run"), partitions or None
    done = _instants_to_run(
        call,
        operation,
        Action.CLUSTERING,
        lambda: call.table.services.schedule_clustering(partitions=chosen, options=options),
    )
    if operation != _SCHEDULE:
        for instant in done:
            call.table.services.cluster(instant, options=options)
    return [row for row in _clusterings(call) if row[0] in done]


def _partitions_where(call: Call, predicate: str) -> list[str]:
    """Return the partitions whose values meet a condition.

    Raises:
        InvalidError: the condition is about other columns, too.
    """
    config = call.table.config
    expression = parse_where(predicate, call.table.schema)
    used = set(where_columns(expression, call.table.schema))
    if others := sorted(used - set(config.partition_fields)):
        raise InvalidError(
            f"The predicate names {', '.join(others)}. Only partition columns are allowed, since whole"
            f" partitions are clustered: {', '.join(config.partition_fields) or 'the table has none'}."
        )
    tasks = call.table.scan(where=predicate).tasks()
    return sorted({task.file_slice.partition for task in tasks if hasattr(task, "file_slice")})


def _clusterings(call: Call) -> Iterator[Sequence[Any]]:
    """Yield the clusterings of the active timeline, newest first."""
    facts, names = call.table._calls.facts(), call.flag("show_involved_partition")
    pending = facts.timeline.pending_of(Action.CLUSTERING)
    completed = facts.timeline.completed_of(Action.REPLACE_COMMIT)
    for instant in _newest_first([*pending, *completed]):
        if instant.is_completed and facts.store.commit_metadata(instant).operation != "CLUSTER":
            continue
        groups = decode_clustering_plan(facts.store.read_requested(instant)).groups
        paths = sorted({each.partition for group in groups for each in group.slices})
        shown = ",".join(paths) if names else "*"
        yield instant.requested, len(groups), str(instant.state.name), shown


def show_clustering(call: Call) -> Rows:
    """Return the clusterings of the active timeline, newest first."""
    return call.limited(_clusterings(call))


def run_clean(call: Call) -> Rows:
    """Clean the table.

    Raises:
        InvalidError: a policy or strategy that there is not.
        UnsupportedError: nothing is to be planned.
    """
    if not call.flag("schedule_in_line"):
        raise UnsupportedError(
            "schedule_in_line => false is not supported: a clean finishes what is planned, and plans. Leave"
            " it out."
        )
    options = dict(call.options)
    for name, key in (
        ("clean_policy", "hoodie.clean.policy"),
        ("trigger_strategy", "hoodie.clean.trigger.strategy"),
        ("trigger_max_commits", _TRIGGER),
    ):
        if (value := call.text(name)) is not None:
            options[key] = value
    WriteOptions.parse(options)
    if not _is_due(call, options):
        return []
    keywords = {}
    for name, keyword, key in (
        ("retain_commits", "retain_commits", "hoodie.clean.commits.retained"),
        ("file_versions_retained", "retain_versions", "hoodie.clean.fileversions.retained"),
        ("hours_retained", "retain_hours", "hoodie.clean.hours.retained"),
    ):
        if (number := call.number(name)) is None:
            continue
        if _POLICY_KEYS.isdisjoint(options):
            keywords[keyword] = number
        else:  # as in Hudi, the policy that is set says which of the numbers counts
            options[key] = str(number)
    result = call.table.services.clean(**keywords, options=options)
    if not result.changed:
        return []
    millis = int(result.seconds * 1000)
    return [(result.instant, millis, result.files, result.earliest_retained, _NO_BOOTSTRAP, _VERSION)]


def _is_due(call: Call, options: Mapping[str, str]) -> bool:
    """Return whether enough writes completed since the last clean, as Hudi asks of this call, too.

    Cleans that deleted nothing do not count: Hudi notes none.
    """
    facts = call.table._calls.facts()
    cleans = map(facts.store.read, _newest_first(facts.timeline.completed_of(Action.CLEAN)))
    done = (clean for clean in map(decode_clean, filter(None, cleans)) if clean.took_something)
    since = next((clean.last_completed for clean in done), "")
    due_after = options.get(_TRIGGER) or "1"
    if not due_after.strip().isdigit():
        raise InvalidError(
            f"{_TRIGGER} is {due_after!r}, but it is a number of commits. Give one, such as 1."
        )
    return sum(write.requested > since for write in facts.timeline.writes()) >= int(due_after)


def show_cleans(call: Call) -> Rows:
    """Return the completed cleans of the active timeline, newest first."""
    refuse_archived_cleans(call)
    facts = call.table._calls.facts()

    def rows() -> Iterator[Sequence[Any]]:
        for instant in _newest_first(facts.timeline.completed_of(Action.CLEAN)):
            clean = decode_clean(facts.store.read(instant))
            files = sum(len(each.deleted) for each in clean.partitions.values())
            begin = (instant.requested, instant.completed, str(instant.action), clean.started, clean.millis)
            yield (*begin, files, clean.earliest, clean.last_completed, _VERSION)

    return call.limited(rows())


def show_clean_plans(call: Call) -> Rows:
    """Return the plans of the cleans of the active timeline, newest first."""
    refuse_archived_cleans(call)
    facts = call.table._calls.facts()
    cleans = [each for each in facts.timeline.instants if each.action is Action.CLEAN]

    def rows() -> Iterator[Sequence[Any]]:
        for instant in _newest_first(cleans):
            plan = decode_clean_plan(facts.store.read_requested(instant))
            earliest = None if plan.earliest is None else plan.earliest.requested
            begin = (instant.requested, str(instant.state.name), str(instant.action), earliest)
            sizes = (len(plan.files), len(plan.partitions_to_delete))
            yield (*begin, plan.last_completed, plan.policy, _VERSION, *sizes, None)

    return call.limited(rows())


def show_rollbacks(call: Call) -> Rows:
    """Return the completed rollbacks of the active timeline, oldest first, and those of restores."""
    return call.limited(
        (
            requested,
            done.instant,
            sum(len(each.deleted) for each in done.stats),
            int(done.seconds * 1000),
            len(done.stats),
        )
        for requested, done in rollbacks_of(call.table._calls.facts())
    )


def archive_commits(call: Call) -> Rows:
    """Archive the timeline; 0 stands for success.

    Raises:
        UnsupportedError: instants would be archived that the metadata table needs.
    """
    if not call.flag("enable_metadata") and call.table.config.metadata_partitions:
        raise UnsupportedError(
            "enable_metadata => false would archive instants that the metadata table of this table needs."
            " Leave it out, or CALL delete_metadata_table first."
        )
    options = dict(call.options)
    if (retained := call.text("retain_commits")) is not None:
        options["hoodie.clean.commits.retained"] = retained
    call.table.services.archive(
        min_commits=call.number("min_commits"), max_commits=call.number("max_commits"), options=options
    )
    return [(0,)]


def run_ttl(call: Call) -> Rows:
    """Delete the partitions that are older than their time to live."""
    options = dict(call.options)
    if policy := call.text("ttl_policy"):
        options["hoodie.partition.ttl.management.strategy.type"] = policy
    if call.number("retain_days") == 0:
        return []  # as in Hudi
    before = {each.partition for each in call.table.inspect.files()}
    call.table.services.expire_partitions(retain_days=call.number("retain_days"), options=options)
    return [(path,) for path in sorted(before - {each.partition for each in call.table.inspect.files()})]


def partition_bucket_index_manager(call: Call) -> Rows:
    """Show or change the rules for numbers of buckets by partition, and rewrite partitions accordingly.

    Raises:
        InvalidError: a rule is invalid, or the commit to undo is not the newest write.
    """
    if (rule := (call.text("rule") or _REGEX).lower()) != _REGEX:
        raise InvalidError(f"There is no rule {rule}. Use {_REGEX}: pattern,count;pattern,count.")
    if call.flag("show_config"):
        return [(_SUCCESS, "SHOW_CONFIG", ";".join(_configurations(call)))]
    if instant := call.text("rollback"):
        return [(_SUCCESS, "ROLLBACK", _rolled_back(call, instant))]
    added = call.text("add")
    expressions = call.text("overwrite") or added
    if expressions is None:
        return [("ERROR", "INVALID_OPERATION", "No valid operation specified")]
    number, is_added = call.number("bucket_number"), not call.text("overwrite")
    default = None if is_added or number == _NO_NUMBER else number
    rules = BucketRules(expressions, default, is_added)
    with call.table._errors():
        context, options = call.table._context, call.table._calls.options("rescale_buckets", call.options)
        if call.flag("dry_run"):
            planned = plan_rescaling(context, rules, options)
            shown = ";".join(f"\n{path} => {count}\n" for path, count in planned.items())
            return [(_SUCCESS, "DRY_RUN_OVERWRITE", shown)]
        rescale_by_rules(context, rules, options)
    _, counts = max(all_counts(context.storage), key=lambda stored: stored[0])
    shown_number = counts.default if is_added else number
    said = f"Expression: {counts.expressions}, Bucket Number: {shown_number}, Dry Run: false"
    return [(_SUCCESS, "OVERWRITE", said)]


def _configurations(call: Call) -> Iterator[str]:
    """Yield the numbers of buckets that were stored, as Hudi shows them."""
    pending = {each.requested for each in call.table.timeline.pending()}
    for instant, counts in all_counts(call.table._context.storage):
        if instant not in pending:
            yield (
                f"PartitionBucketIndexHashingConfig(expressions={counts.expressions},"
                f" defaultBucketNumber={counts.default}, rule={_REGEX}, version=1, instant={instant})"
            )


def _rolled_back(call: Call, instant: str) -> str:
    """Undo the commit that changed numbers of buckets.

    Raises:
        InvalidError: there is no such commit, or it is not the newest write.
    """
    times = [time for time, _ in all_counts(call.table._context.storage)]
    writes = [each.requested for each in call.table.timeline.writes()]
    if instant not in times or instant not in writes[1:]:
        raise InvalidError(
            f"No commit {instant} changed the numbers of buckets. CALL partition_bucket_index_manager(...,"
            " show_config => true) shows those that did."
        )
    if instant != writes[-1]:
        raise InvalidError(
            f"{instant} is not the newest write, and later ones follow its numbers of buckets. Give other"
            " numbers by overwrite => 'pattern,count', which rewrites the partitions."
        )
    call.table.savepoints.restore(writes[-2], options=call.options)
    return f"true to rollback {instant}"


PROCEDURES: Final = (
    Procedure(
        "partition_bucket_index_manager",
        "table STRING!, overwrite STRING, bucket_number INT=-1, add STRING, dry_run BOOLEAN=true,"
        " rollback STRING, show_config BOOLEAN=false, rule STRING='regex', options STRING",
        "result STRING, operation STRING, details STRING",
        partition_bucket_index_manager,
    ),
    Procedure(
        "run_compaction",
        "op STRING!, table STRING, path STRING, timestamp BIGINT, options STRING, instants STRING, limit INT",
        _COMPACTION,
        run_compaction,
    ),
    Procedure("show_compaction", "table STRING, path STRING, limit INT=20", _COMPACTION, show_compaction),
    Procedure(
        "run_clustering",
        "table STRING, path STRING, predicate STRING, order STRING, show_involved_partition BOOLEAN=false,"
        " op STRING, order_strategy STRING, options STRING, instants STRING, selected_partitions STRING,"
        " partition_regex_pattern STRING, limit INT",
        _CLUSTERING,
        run_clustering,
    ),
    Procedure(
        "show_clustering",
        "table STRING, path STRING, limit INT=20, show_involved_partition BOOLEAN=false",
        _CLUSTERING,
        show_clustering,
    ),
    Procedure(
        "run_clean",
        "table STRING!, schedule_in_line BOOLEAN=true, clean_policy STRING, retain_commits INT,"
        " hours_retained INT, file_versions_retained INT, trigger_strategy STRING, trigger_max_commits INT,"
        " options STRING",
        "start_clean_time STRING, time_taken_in_millis BIGINT, total_files_deleted INT,"
        " earliest_commit_to_retain STRING, bootstrap_part_metadata STRING, version INT",
        run_clean,
    ),
    Procedure(
        "show_cleans",
        "table STRING!, limit INT=10, showArchived BOOLEAN=false, filter STRING",
        "clean_time STRING, state_transition_time STRING, action STRING, start_clean_time STRING,"
        " time_taken_in_millis BIGINT, total_files_deleted INT, earliest_commit_to_retain STRING,"
        " last_completed_commit_timestamp STRING, version INT",
        show_cleans,
    ),
    Procedure(
        "show_clean_plans",
        "table STRING!, limit INT=10, showArchived BOOLEAN=false, filter STRING",
        "plan_time STRING, state STRING, action STRING, earliest_instant_to_retain STRING,"
        " last_completed_commit_timestamp STRING, policy STRING, version INT, total_partitions_to_clean INT,"
        " total_partitions_to_delete INT, extra_metadata STRING",
        show_clean_plans,
    ),
    Procedure(
        "show_rollbacks",
        "table STRING!, limit INT=10",
        "instant STRING, rollback_instant STRING, total_files_deleted INT, time_taken_in_millis BIGINT,"
        " total_partitions INT",
        show_rollbacks,
    ),
    Procedure(
        "archive_commits",
        "table STRING, path STRING, min_commits INT=20, max_commits INT=30, retain_commits INT=10,"
        " enable_metadata BOOLEAN=true",
        "result INT",
        archive_commits,
    ),
    Procedure(
        "run_ttl",
        "table STRING!, ttl_policy STRING, retain_days INT, options STRING",
        "deleted_partitions STRING",
        run_ttl,
    ),
)
