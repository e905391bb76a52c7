"""Hudi's options that have nothing to act on here, each by its own key, with the reason.

Each option of Hudi (`hudi_options.tsv`) has one state: it acts (`Option`), it is refused unless it describes
drawstring (`unsupported.py`), or it stands here. What is deleted, kept, merged, ordered, committed or locked
never depends on an option that stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

_KEYS: Final[Mapping[str, str]] = {
    "it configures Hudi's own ingestion tool; `drawstring ingest` warns of those that it does not have": """
        hoodie.deltastreamer.checkpoint.force.skip hoodie.deltastreamer.checkpoint.provider.path
        hoodie.deltastreamer.jdbc.driver.class hoodie.deltastreamer.jdbc.incr.fallback.to.full.fetch
        hoodie.deltastreamer.jdbc.storage.level hoodie.deltastreamer.s3.source.queue.fs
        hoodie.deltastreamer.s3.source.queue.long.poll.wait
        hoodie.deltastreamer.s3.source.queue.max.messages.per.batch
        hoodie.deltastreamer.s3.source.queue.max.messages.per.request
        hoodie.deltastreamer.s3.source.queue.region hoodie.deltastreamer.s3.source.queue.url
        hoodie.deltastreamer.s3.source.queue.visibility.timeout hoodie.deltastreamer.sample.writes.enabled
        hoodie.deltastreamer.sample.writes.size hoodie.deltastreamer.schema.make.columns.nullable
        hoodie.deltastreamer.schemaprovider.proto.class.name
        hoodie.deltastreamer.schemaprovider.proto.flatten.wrappers
        hoodie.deltastreamer.schemaprovider.proto.max.recursion.depth
        hoodie.deltastreamer.schemaprovider.proto.timestamps.as.records
        hoodie.deltastreamer.schemaprovider.registry.baseurl
        hoodie.deltastreamer.schemaprovider.registry.schemaconverter
        hoodie.deltastreamer.schemaprovider.registry.sourceurlsuffix
        hoodie.deltastreamer.schemaprovider.registry.targeturl
        hoodie.deltastreamer.schemaprovider.registry.targeturlsuffix
        hoodie.deltastreamer.schemaprovider.registry.urlsuffix
        hoodie.deltastreamer.schemaprovider.schema_post_processor
        hoodie.deltastreamer.schemaprovider.schema_post_processor.add.column.default
        hoodie.deltastreamer.schemaprovider.schema_post_processor.add.column.doc
        hoodie.deltastreamer.schemaprovider.schema_post_processor.add.column.name
        hoodie.deltastreamer.schemaprovider.schema_post_processor.add.column.nullable
        hoodie.deltastreamer.schemaprovider.schema_post_processor.add.column.type
        hoodie.deltastreamer.schemaprovider.schema_post_processor.delete.columns
        hoodie.deltastreamer.schemaprovider.source.schema.hive.database
        hoodie.deltastreamer.schemaprovider.source.schema.hive.table
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.connection.url
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.dbtable
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.driver.type
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.nullable
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.password
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.timeout
        hoodie.deltastreamer.schemaprovider.source.schema.jdbc.username
        hoodie.deltastreamer.schemaprovider.target.schema.hive.database
        hoodie.deltastreamer.schemaprovider.target.schema.hive.table
        hoodie.deltastreamer.source.cloud.data.check.file.exists
        hoodie.deltastreamer.source.cloud.data.datafile.format
        hoodie.deltastreamer.source.cloud.data.datasource.options
        hoodie.deltastreamer.source.cloud.data.ignore.relpath.prefix
        hoodie.deltastreamer.source.cloud.data.ignore.relpath.substring
        hoodie.deltastreamer.source.cloud.data.partition.fields.from.path
        hoodie.deltastreamer.source.cloud.data.select.file.extension
        hoodie.deltastreamer.source.cloud.data.select.relpath.prefix
        hoodie.deltastreamer.source.cloud.meta.ack hoodie.deltastreamer.source.cloud.meta.batch.size
        hoodie.deltastreamer.source.dfs.datepartitioned.date.format
        hoodie.deltastreamer.source.dfs.datepartitioned.selector.currentdate
        hoodie.deltastreamer.source.dfs.datepartitioned.selector.depth
        hoodie.deltastreamer.source.dfs.datepartitioned.selector.lookback.days
        hoodie.deltastreamer.source.dfs.datepartitioned.selector.parallelism
        hoodie.deltastreamer.source.gcs.project.id hoodie.deltastreamer.source.gcs.subscription.id
        hoodie.deltastreamer.source.hoodieincr.drop.all.meta.fields.from.source
        hoodie.deltastreamer.source.hoodieincr.file.format
        hoodie.deltastreamer.source.hoodieincr.partition.extractor.class
        hoodie.deltastreamer.source.hoodieincr.partition.fields
        hoodie.deltastreamer.source.hoodieincr.read_latest_on_missing_ckpt
        hoodie.deltastreamer.source.incrpull.root hoodie.deltastreamer.source.input.selector
        hoodie.deltastreamer.source.json.kafka.post.processor.maxwell.database.regex
        hoodie.deltastreamer.source.json.kafka.post.processor.maxwell.precombine.field.format
        hoodie.deltastreamer.source.json.kafka.post.processor.maxwell.precombine.field.type
        hoodie.deltastreamer.source.json.kafka.post.processor.maxwell.table.regex
        hoodie.deltastreamer.source.json.kafka.processor.class
        hoodie.deltastreamer.source.kafka.checkpoint.type
        hoodie.deltastreamer.source.kafka.fetch_partition.time.out
        hoodie.deltastreamer.source.kafka.json.value.deserializer.class
        hoodie.deltastreamer.source.kafka.minpartitions
        hoodie.deltastreamer.source.kafka.value.deserializer.class
        hoodie.deltastreamer.source.kafka.value.deserializer.schema
        hoodie.deltastreamer.source.pulsar.endpoint.admin.url
        hoodie.deltastreamer.source.pulsar.endpoint.service.url
        hoodie.deltastreamer.source.pulsar.maxrecords
        hoodie.deltastreamer.source.pulsar.offset.autoresetstrategy hoodie.deltastreamer.source.pulsar.topic
        hoodie.deltastreamer.source.s3incr.check.file.exists hoodie.deltastreamer.source.s3incr.fs.prefix
        hoodie.deltastreamer.source.s3incr.ignore.key.prefix
        hoodie.deltastreamer.source.s3incr.ignore.key.substring
        hoodie.deltastreamer.source.s3incr.key.prefix
        hoodie.deltastreamer.source.s3incr.spark.datasource.options
        hoodie.deltastreamer.source.sanitize.invalid.char.mask
        hoodie.deltastreamer.source.sanitize.invalid.schema.field.names hoodie.deltastreamer.source.sql.file
        hoodie.streamer.checkpoint.force.skip hoodie.streamer.checkpoint.provider.path
        hoodie.streamer.jdbc.driver.class hoodie.streamer.jdbc.incr.fallback.to.full.fetch
        hoodie.streamer.jdbc.storage.level hoodie.streamer.row.throw.explicit.exceptions
        hoodie.streamer.s3.source.queue.fs hoodie.streamer.s3.source.queue.long.poll.wait
        hoodie.streamer.s3.source.queue.max.messages.per.batch
        hoodie.streamer.s3.source.queue.max.messages.per.request hoodie.streamer.s3.source.queue.region
        hoodie.streamer.s3.source.queue.url hoodie.streamer.s3.source.queue.visibility.timeout
        hoodie.streamer.sample.writes.enabled hoodie.streamer.sample.writes.size
        hoodie.streamer.schema.make.columns.nullable
        hoodie.streamer.schemaconverter.json_to_avro.convert_default_value_type
        hoodie.streamer.schemaconverter.json_to_avro.strip_default_value_quotes
        hoodie.streamer.schemaprovider.class hoodie.streamer.schemaprovider.proto.class.name
        hoodie.streamer.schemaprovider.proto.flatten.wrappers
        hoodie.streamer.schemaprovider.proto.max.recursion.depth
        hoodie.streamer.schemaprovider.proto.timestamps.as.records
        hoodie.streamer.schemaprovider.registry.baseurl
        hoodie.streamer.schemaprovider.registry.schemaconverter
        hoodie.streamer.schemaprovider.registry.sourceurlsuffix
        hoodie.streamer.schemaprovider.registry.targeturl
        hoodie.streamer.schemaprovider.registry.targeturlsuffix
        hoodie.streamer.schemaprovider.registry.urlsuffix
        hoodie.streamer.schemaprovider.schema_post_processor
        hoodie.streamer.schemaprovider.schema_post_processor.add.column.default
        hoodie.streamer.schemaprovider.schema_post_processor.add.column.doc
        hoodie.streamer.schemaprovider.schema_post_processor.add.column.name
        hoodie.streamer.schemaprovider.schema_post_processor.add.column.nullable
        hoodie.streamer.schemaprovider.schema_post_processor.add.column.type
        hoodie.streamer.schemaprovider.schema_post_processor.delete.columns
        hoodie.streamer.schemaprovider.source.schema.hive.database
        hoodie.streamer.schemaprovider.source.schema.hive.table
        hoodie.streamer.schemaprovider.source.schema.jdbc.connection.url
        hoodie.streamer.schemaprovider.source.schema.jdbc.dbtable
        hoodie.streamer.schemaprovider.source.schema.jdbc.driver.type
        hoodie.streamer.schemaprovider.source.schema.jdbc.nullable
        hoodie.streamer.schemaprovider.source.schema.jdbc.password
        hoodie.streamer.schemaprovider.source.schema.jdbc.timeout
        hoodie.streamer.schemaprovider.source.schema.jdbc.username
        hoodie.streamer.schemaprovider.target.schema.hive.database
        hoodie.streamer.schemaprovider.target.schema.hive.table
        hoodie.streamer.source.cloud.data.check.file.exists
        hoodie.streamer.source.cloud.data.datafile.format
        hoodie.streamer.source.cloud.data.datasource.options
        hoodie.streamer.source.cloud.data.ignore.relpath.prefix
        hoodie.streamer.source.cloud.data.ignore.relpath.substring
        hoodie.streamer.source.cloud.data.merge.schema.enable
        hoodie.streamer.source.cloud.data.partition.fields.from.path
        hoodie.streamer.source.cloud.data.partition.max.size
        hoodie.streamer.source.cloud.data.reader.coalesce.aliases
        hoodie.streamer.source.cloud.data.reader.comma.separated.path.format
        hoodie.streamer.source.cloud.data.select.file.extension
        hoodie.streamer.source.cloud.data.select.relative.path.regex
        hoodie.streamer.source.cloud.data.select.relpath.prefix hoodie.streamer.source.cloud.meta.ack
        hoodie.streamer.source.cloud.meta.batch.size hoodie.streamer.source.cloud.meta.events.per.partition
        hoodie.streamer.source.cloud.meta.max.fetch.time.per.sync.secs
        hoodie.streamer.source.cloud.meta.max.num.messages.per.sync
        hoodie.streamer.source.dfs.datepartitioned.date.format
        hoodie.streamer.source.dfs.datepartitioned.selector.currentdate
        hoodie.streamer.source.dfs.datepartitioned.selector.depth
        hoodie.streamer.source.dfs.datepartitioned.selector.lookback.days
        hoodie.streamer.source.dfs.datepartitioned.selector.parallelism
        hoodie.streamer.source.gcs.project.id hoodie.streamer.source.gcs.subscription.id
        hoodie.streamer.source.hoodieincr.data.datasource.options
        hoodie.streamer.source.hoodieincr.drop.all.meta.fields.from.source
        hoodie.streamer.source.hoodieincr.file.format
        hoodie.streamer.source.hoodieincr.partition.extractor.class
        hoodie.streamer.source.hoodieincr.partition.fields
        hoodie.streamer.source.hoodieincr.read_latest_on_missing_ckpt hoodie.streamer.source.incrpull.root
        hoodie.streamer.source.input.selector
        hoodie.streamer.source.json.kafka.post.processor.maxwell.database.regex
        hoodie.streamer.source.json.kafka.post.processor.maxwell.ordering.fields.format
        hoodie.streamer.source.json.kafka.post.processor.maxwell.ordering.fields.type
        hoodie.streamer.source.json.kafka.post.processor.maxwell.precombine.field.format
        hoodie.streamer.source.json.kafka.post.processor.maxwell.precombine.field.type
        hoodie.streamer.source.json.kafka.post.processor.maxwell.table.regex
        hoodie.streamer.source.json.kafka.processor.class hoodie.streamer.source.kafka.checkpoint.type
        hoodie.streamer.source.kafka.fetch_partition.time.out
        hoodie.streamer.source.kafka.ignore.prefix.config.list hoodie.streamer.source.kafka.minpartitions
        hoodie.streamer.source.kafka.offset.skip.buffer.minutes
        hoodie.streamer.source.kafka.proto.value.deserializer.class
        hoodie.streamer.source.kafka.retry.exceptions hoodie.streamer.source.kafka.retry.initial_interval_ms
        hoodie.streamer.source.kafka.retry.max_count hoodie.streamer.source.kafka.retry.max_interval_ms
        hoodie.streamer.source.kafka.value.deserializer.class
        hoodie.streamer.source.kafka.value.deserializer.schema hoodie.streamer.source.kinesis.access.key
        hoodie.streamer.source.kinesis.append.offsets hoodie.streamer.source.kinesis.enable.deaggregation
        hoodie.streamer.source.kinesis.endpoint.url hoodie.streamer.source.kinesis.fail.on.data.loss.enable
        hoodie.streamer.source.kinesis.get.records.interval.ms hoodie.streamer.source.kinesis.max.events
        hoodie.streamer.source.kinesis.max.records.per.request hoodie.streamer.source.kinesis.partitions
        hoodie.streamer.source.kinesis.persist.fetch.rdd hoodie.streamer.source.kinesis.region
        hoodie.streamer.source.kinesis.retry.initial.interval.ms
        hoodie.streamer.source.kinesis.retry.max.interval.ms
        hoodie.streamer.source.kinesis.retry.throttle.timeout.ms hoodie.streamer.source.kinesis.secret.key
        hoodie.streamer.source.kinesis.starting.position hoodie.streamer.source.kinesis.stream.name
        hoodie.streamer.source.orc.dfs.merge.schema.enable
        hoodie.streamer.source.parquet.dfs.merge.schema.enable
        hoodie.streamer.source.pulsar.endpoint.admin.url hoodie.streamer.source.pulsar.endpoint.service.url
        hoodie.streamer.source.pulsar.maxrecords hoodie.streamer.source.pulsar.offset.autoresetstrategy
        hoodie.streamer.source.pulsar.topic hoodie.streamer.source.s3incr.check.file.exists
        hoodie.streamer.source.s3incr.fs.prefix hoodie.streamer.source.s3incr.ignore.key.prefix
        hoodie.streamer.source.s3incr.ignore.key.substring hoodie.streamer.source.s3incr.key.prefix
        hoodie.streamer.source.s3incr.spark.datasource.options
        hoodie.streamer.source.sanitize.invalid.char.mask
        hoodie.streamer.source.sanitize.invalid.schema.field.names hoodie.streamer.source.sql.file
        hoodie.utilities.ingestion.is.continuous hoodie.utilities.ingestion.min.sync.internal.seconds
    """,
    (
        "it is for a catalog, or a way to reach one, that hoodie.meta.sync.client.tool.class does not"
        " offer here"
    ): """
        hoodie.datasource.adb.sync.auto_create_database hoodie.datasource.adb.sync.db_location
        hoodie.datasource.adb.sync.drop_table_before_creation
        hoodie.datasource.adb.sync.hive_style_partitioning hoodie.datasource.adb.sync.jdbc_url
        hoodie.datasource.adb.sync.password hoodie.datasource.adb.sync.schema_string_length_threshold
        hoodie.datasource.adb.sync.serde_properties hoodie.datasource.adb.sync.skip_last_commit_time_sync
        hoodie.datasource.adb.sync.skip_ro_suffix hoodie.datasource.adb.sync.skip_rt_sync
        hoodie.datasource.adb.sync.support_timestamp hoodie.datasource.adb.sync.sync_as_spark_datasource
        hoodie.datasource.adb.sync.table_properties hoodie.datasource.adb.sync.username
        hoodie.datasource.hive_sync.jdbcurl hoodie.datasource.hive_sync.password
        hoodie.datasource.hive_sync.use_jdbc hoodie.datasource.hive_sync.use_spark_catalog
        hoodie.datasource.hive_sync.username hoodie.gcp.bigquery.sync.big_lake_connection_id
        hoodie.gcp.bigquery.sync.billing.project.id hoodie.gcp.bigquery.sync.dataset_location
        hoodie.gcp.bigquery.sync.dataset_name hoodie.gcp.bigquery.sync.partition_fields
        hoodie.gcp.bigquery.sync.project_id hoodie.gcp.bigquery.sync.require_partition_filter
        hoodie.gcp.bigquery.sync.source_uri hoodie.gcp.bigquery.sync.source_uri_prefix
        hoodie.gcp.bigquery.sync.table_name hoodie.gcp.bigquery.sync.use_bq_manifest_file
        hoodie.gcp.bigquery.sync.use_file_listing_from_metadata hoodie.meta.sync.datahub.database.name
        hoodie.meta.sync.datahub.dataplatform_instance.name
        hoodie.meta.sync.datahub.dataset.identifier.class hoodie.meta.sync.datahub.domain.identifier
        hoodie.meta.sync.datahub.emitter.supplier.class hoodie.meta.sync.datahub.sync.suppress.exceptions
        hoodie.meta.sync.datahub.table.name hoodie.meta.sync.datahub.table.properties
        hoodie.meta.sync.datahub.tls.ca.cert.path hoodie.meta.sync.datahub.tls.keystore.password
        hoodie.meta.sync.datahub.tls.keystore.path hoodie.meta.sync.datahub.tls.truststore.password
        hoodie.meta.sync.datahub.tls.truststore.path hoodie.meta_sync.global.replicate.timestamp
    """,
    "listeners receive the metrics of writes (drawstring.add_listener)": """
        hoodie.metadata.enable.detailed.metrics hoodie.metadata.metrics.enable
        hoodie.metrics.cloudwatch.maxdatumsperrequest hoodie.metrics.cloudwatch.metric.prefix
        hoodie.metrics.cloudwatch.namespace hoodie.metrics.cloudwatch.report.period.seconds
        hoodie.metrics.configs.properties hoodie.metrics.datadog.api.key
        hoodie.metrics.datadog.api.key.skip.validation hoodie.metrics.datadog.api.key.supplier
        hoodie.metrics.datadog.api.site hoodie.metrics.datadog.api.timeout.seconds
        hoodie.metrics.datadog.metric.host hoodie.metrics.datadog.metric.prefix
        hoodie.metrics.datadog.metric.tags hoodie.metrics.datadog.report.period.seconds
        hoodie.metrics.executor.enable hoodie.metrics.graphite.host hoodie.metrics.graphite.metric.prefix
        hoodie.metrics.graphite.port hoodie.metrics.graphite.report.period.seconds hoodie.metrics.jmx.host
        hoodie.metrics.jmx.port hoodie.metrics.lock.enable hoodie.metrics.m3.env hoodie.metrics.m3.host
        hoodie.metrics.m3.port hoodie.metrics.m3.service hoodie.metrics.m3.tags hoodie.metrics.on
        hoodie.metrics.prometheus.port hoodie.metrics.pushgateway.delete.on.shutdown
        hoodie.metrics.pushgateway.host hoodie.metrics.pushgateway.job.name hoodie.metrics.pushgateway.port
        hoodie.metrics.pushgateway.random.job.name.suffix hoodie.metrics.pushgateway.report.labels
        hoodie.metrics.pushgateway.report.period.seconds hoodie.metrics.reporter.class
        hoodie.metrics.reporter.metricsname.prefix hoodie.metrics.reporter.type
        hoodie.metricscompaction.log.blocks.on hoodie.payload.event.time.field
    """,
    (
        "it bounds or caches memory of the JVM, or says where it spills; drawstring has options of its"
        " own for that"
    ): """
        hoodie.bloom.index.input.storage.level hoodie.bloom.index.use.caching
        hoodie.cdc.file.group.iterator.memory.spill.bytes hoodie.common.diskmap.compression.enabled
        hoodie.common.spillable.diskmap.type hoodie.errortable.source.rdd.persist
        hoodie.expression.index.range.metadata.storage.level hoodie.file.index.cache.spillable.mem
        hoodie.file.index.cache.use.spillable.map hoodie.hfile.block.cache.enabled
        hoodie.hfile.block.cache.size hoodie.hfile.block.cache.ttl.minutes
        hoodie.lance.read.allocator.size.bytes hoodie.lance.read.metadata.allocator.size.bytes
        hoodie.lance.write.allocator.size.bytes hoodie.lance.write.flush.byte.watermark
        hoodie.memory.compaction.fraction hoodie.memory.compaction.max.size
        hoodie.memory.dfs.buffer.max.size hoodie.memory.merge.fraction hoodie.memory.merge.max.size
        hoodie.memory.spillable.map.path hoodie.memory.writestatus.failure.fraction
        hoodie.metadata.file.cache.max.size.mb
        hoodie.metadata.index.column.stats.inmemory.projection.threshold
        hoodie.metadata.max.reader.buffer.size hoodie.metadata.max.reader.memory
        hoodie.metadata.spillable.map.path hoodie.record.index.input.storage.level
        hoodie.record.index.use.caching hoodie.release.resource.on.completion.enable
        hoodie.simple.index.input.storage.level hoodie.simple.index.use.caching
        hoodie.write.buffer.limit.bytes hoodie.write.buffer.record.cache.limit
        hoodie.write.buffer.record.sampling.rate hoodie.write.executor.disruptor.buffer.limit.bytes
        hoodie.write.executor.disruptor.wait.strategy hoodie.write.executor.type
        hoodie.write.status.storage.level hoodie.write.tagged.record.storage.level
    """,
    "it chooses how the Java engine gets a result that is the same": """
        hoodie.block.writes.on.speculative.execution hoodie.bloom.index.bucketized.checking
        hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism
        hoodie.bloom.index.fileid.key.sorting.enable hoodie.bloom.index.keys.per.bucket
        hoodie.bloom.index.use.metadata hoodie.bloom.index.use.treebased.filter
        hoodie.bootstrap.data.queries.only hoodie.bucket.index.query.pruning
        hoodie.bucket.index.remote.partitioner.enable hoodie.clean.optimize.using.local.engine.context
        hoodie.clustering.plan.generation.use.local.engine.context
        hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable
        hoodie.compaction.lazy.block.read hoodie.compaction.reverse.log.read
        hoodie.datasource.read.file.index.list.partitions.from.catalog
        hoodie.datasource.read.file.index.listing.mode
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.file.index.optimize.listing.using.path.filter
        hoodie.datasource.write.row.writer.enable hoodie.fail.job.on.duplicate.data.file.detection
        hoodie.file.group.reader.enabled hoodie.file.index.enable
        hoodie.layout.optimize.build.curve.sample.size hoodie.layout.optimize.data.skipping.enable
        hoodie.layout.optimize.enable hoodie.metadata.index.column.stats.processing.mode.override
        hoodie.metadata.optimized.log.blocks.scan.enable hoodie.metadata.streaming.write.enabled
        hoodie.skip.default.partition.validation hoodie.spark.sql.optimized.writes.enable
        hoodie.table.services.incremental.enabled hoodie.write.complex.keygen.validation.enable
    """,
    "it sets the parallelism of the Java engine's tasks; an engine here has its own": """
        hoodie.archive.delete.parallelism hoodie.bloom.index.parallelism hoodie.bootstrap.parallelism
        hoodie.bulkinsert.shuffle.parallelism hoodie.clean.parallelism hoodie.cleaner.parallelism
        hoodie.clustering.group.read.parallelism hoodie.clustering.max.parallelism
        hoodie.delete.shuffle.parallelism hoodie.errortable.insert.shuffle.parallelism
        hoodie.errortable.upsert.shuffle.parallelism hoodie.file.listing.parallelism
        hoodie.finalize.write.parallelism hoodie.global.index.reconcile.parallelism
        hoodie.global.simple.index.parallelism hoodie.insert.shuffle.parallelism
        hoodie.markers.delete.parallelism hoodie.metadata.index.bloom.filter.parallelism
        hoodie.metadata.index.column.stats.parallelism hoodie.metadata.index.expression.parallelism
        hoodie.metadata.index.partition.stats.parallelism hoodie.metadata.index.secondary.parallelism
        hoodie.metadata.max.init.parallelism hoodie.metadata.range.repartition.random.seed
        hoodie.metadata.range.repartition.sampling.fraction
        hoodie.metadata.range.repartition.target.records.per.partition
        hoodie.metadata.record.preparation.parallelism hoodie.metadata.repartition.default.partitions
        hoodie.metadata.repartition.min.partitions.threshold
        hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor
        hoodie.rollback.parallelism hoodie.simple.index.parallelism hoodie.upsert.shuffle.parallelism
    """,
    "catalogs get the table as drawstring describes it": """
        hoodie.datasource.hive_sync.base_file_format hoodie.datasource.hive_sync.batch_num
        hoodie.datasource.hive_sync.bucket_sync hoodie.datasource.hive_sync.bucket_sync_spec
        hoodie.datasource.hive_sync.filter_pushdown_enabled
        hoodie.datasource.hive_sync.filter_pushdown_max_size hoodie.datasource.hive_sync.ignore_exceptions
        hoodie.datasource.hive_sync.recreate_table_on_error hoodie.datasource.hive_sync.sync_comment
        hoodie.datasource.meta.sync.base.path
        hoodie.datasource.meta.sync.glue.all_partitions_read_parallelism
        hoodie.datasource.meta.sync.glue.catalogid
        hoodie.datasource.meta.sync.glue.changed_partitions_read_parallelism
        hoodie.datasource.meta.sync.glue.database_name
        hoodie.datasource.meta.sync.glue.metadata_file_listing
        hoodie.datasource.meta.sync.glue.partition_change_parallelism
        hoodie.datasource.meta.sync.glue.partition_index_fields
        hoodie.datasource.meta.sync.glue.partition_index_fields.enable
        hoodie.datasource.meta.sync.glue.recreate_table_on_error
        hoodie.datasource.meta.sync.glue.resource_tags hoodie.datasource.meta.sync.glue.skip_table_archive
        hoodie.datasource.meta.sync.glue.table_name hoodie.datasource.meta_sync.condition.sync
        hoodie.datasource.partition_extractor_class hoodie.meta.sync.decode_partition
        hoodie.meta.sync.metadata_file_listing
        hoodie.meta.sync.no_partition_metadata hoodie.meta.sync.sync_snapshot_with_table_name
        hoodie.meta.sync.touch.partitions.enabled hoodie.meta_sync.spark.version
        hoodie.table.partition_extractor_class
    """,
    (
        "it configures the embedded timeline server or a remote view of files, which drawstring does without"
    ): """
        hoodie.embed.timeline.server hoodie.embed.timeline.server.async hoodie.embed.timeline.server.gzip
        hoodie.embed.timeline.server.port hoodie.embed.timeline.server.reuse.enabled
        hoodie.embed.timeline.server.threads hoodie.filesystem.remote.backup.view.enable
        hoodie.filesystem.view.incr.timeline.sync.enable hoodie.filesystem.view.remote.host
        hoodie.filesystem.view.remote.port hoodie.filesystem.view.remote.response.charset
        hoodie.filesystem.view.remote.retry.enable hoodie.filesystem.view.remote.retry.exceptions
        hoodie.filesystem.view.remote.retry.initial_interval_ms
        hoodie.filesystem.view.remote.retry.max_interval_ms hoodie.filesystem.view.remote.retry.max_numbers
        hoodie.filesystem.view.remote.timeout.secs hoodie.filesystem.view.rocksdb.base.path
        hoodie.filesystem.view.secondary.type
        hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction
        hoodie.filesystem.view.spillable.clustering.mem.fraction
        hoodie.filesystem.view.spillable.compaction.mem.fraction hoodie.filesystem.view.spillable.dir
        hoodie.filesystem.view.spillable.log.compaction.mem.fraction hoodie.filesystem.view.spillable.mem
        hoodie.filesystem.view.spillable.replaced.mem.fraction hoodie.filesystem.view.type
        hoodie.markers.timeline_server_based.batch.interval_ms
        hoodie.markers.timeline_server_based.batch.num_threads hoodie.write.markers.type
    """,
    "it sizes or schedules files of the metadata table; drawstring sizes them by what they hold": """
        hoodie.log.compaction.enable hoodie.metadata.bloom.filter.dynamic.max.entries
        hoodie.metadata.bloom.filter.enable hoodie.metadata.bloom.filter.fpp
        hoodie.metadata.bloom.filter.num.entries hoodie.metadata.bloom.filter.type
        hoodie.metadata.compact.max.delta.seconds hoodie.metadata.derive.from.datatable.clean.policy
        hoodie.metadata.global.record.level.index.max.filegroup.count
        hoodie.metadata.global.record.level.index.min.filegroup.count
        hoodie.metadata.index.bloom.filter.file.group.count
        hoodie.metadata.index.column.stats.file.group.count
        hoodie.metadata.index.expression.file.group.count
        hoodie.metadata.index.partition.stats.file.group.count hoodie.metadata.max.logfile.size
        hoodie.metadata.partitioned.record.index.max.filegroup.count
        hoodie.metadata.partitioned.record.index.min.filegroup.count
        hoodie.metadata.record.index.enable.validation.on.initialization
        hoodie.metadata.record.index.growth.factor hoodie.metadata.record.index.max.filegroup.count
        hoodie.metadata.record.index.max.filegroup.size hoodie.metadata.record.index.min.filegroup.count
        hoodie.metadata.record.level.index.defer.init hoodie.metadata.record.level.index.max.filegroup.count
        hoodie.metadata.record.level.index.min.filegroup.count
    """,
    "it is a property that a table has by its format": """
        hoodie.archivelog.folder hoodie.expression.index.function hoodie.expression.index.type
        hoodie.index.name hoodie.table.checksum hoodie.table.create.schema hoodie.table.index.defs.path
        hoodie.table.initial.version hoodie.table.legacy.payload.class hoodie.table.log.file.format
        hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight
        hoodie.table.secondary.indexes.metadata hoodie.timeline.history.path hoodie.timeline.layout.version
        hoodie.timeline.path hoodie.vector.columns
    """,
    "it names or tunes classes inside the Java engine, whose result is the same": """
        _hoodie.record.size.estimator.max.commits hoodie.avro.write.support.class
        hoodie.compact.merge.handle.class hoodie.fileid.prefix.provider.class hoodie.io.factory.class
        hoodie.merge.data.validation.enabled hoodie.parquet.spark.row.write.support.class
        hoodie.record.size.estimator.average.metadata.size hoodie.record.size.estimator.class
        hoodie.spark.polaris.catalog.class hoodie.storage.class hoodie.storage.layout.partitioner.class
        hoodie.storage.layout.type hoodie.write.concat.handle.class hoodie.write.merge.handle.class
        hoodie.write.merge.handle.fallback hoodie.writestatus.class
    """,
    "it is of the metaserver or the table service manager, which an option of theirs has to switch on": """
        hoodie.metadata.table.service.manager.actions hoodie.metaserver.connect.retries
        hoodie.metaserver.connect.retry.delay hoodie.metaserver.uris hoodie.table.service.manager.actions
        hoodie.table.service.manager.connection.retries
        hoodie.table.service.manager.connection.retry.delay.sec
        hoodie.table.service.manager.connection.timeout.sec hoodie.table.service.manager.deploy.extra.params
        hoodie.table.service.manager.deploy.parallelism hoodie.table.service.manager.deploy.queue
        hoodie.table.service.manager.deploy.resources hoodie.table.service.manager.deploy.username
        hoodie.table.service.manager.execution.engine hoodie.table.service.manager.uris
    """,
    "the Java engine sets it itself, inside a write or a query": """
        _.hoodie.allow.multi.write.on.same.instant _hoodie.metadata.ignore.spurious.deletes
        hoodie.bulkinsert.are.partitioner.records.sorted hoodie.bulkinsert.overwrite.operation.type
        hoodie.bulkinsert.schema.ddl
        hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
        hoodie.datasource.read.table.valued.function.timeline.relation.archived hoodie.internal.schema
        hoodie.internal.spark.streaming.batch.id hoodie.internal.sql.merge.into.writes
        hoodie.internal.write.schema.canonicalize hoodie.metadata.fallback.enable
        hoodie.schema.internal.queryschema
    """,
    "it waits for or retries calls of Hadoop's file systems; storages here have their own options": """
        _hoodie.optimistic.consistency.guard.enable hoodie.consistency.check.enabled
        hoodie.consistency.check.initial_interval_ms hoodie.consistency.check.max_checks
        hoodie.consistency.check.max_interval_ms hoodie.filesystem.operation.retry.enable
        hoodie.filesystem.operation.retry.exceptions hoodie.filesystem.operation.retry.initial_interval_ms
        hoodie.filesystem.operation.retry.max_interval_ms hoodie.filesystem.operation.retry.max_numbers
        hoodie.fs.atomic_creation.support hoodie.optimistic.consistency.guard.sleep_time_ms
    """,
    "it sizes parts of files; the writers of files here choose them": """
        hoodie.logfile.data.block.max.size hoodie.logfile.max.size
        hoodie.logfile.to.parquet.compression.ratio hoodie.orc.block.size hoodie.orc.stripe.size
        hoodie.parquet.block.size hoodie.parquet.compression.ratio hoodie.parquet.dictionary.enabled
        hoodie.parquet.field_id.write.enabled hoodie.parquet.page.size
    """,
    "it is of AWS clients of the Java engine; storage_options and the environment name credentials here": """
        hoodie.aws.access.key hoodie.aws.glue.endpoint hoodie.aws.glue.region hoodie.aws.role.arn
        hoodie.aws.role.external.id hoodie.aws.role.session.name hoodie.aws.secret.key
        hoodie.aws.session.token
    """,
    (
        "it is of another lock provider, or of waiting for one; hoodie.write.lock.provider and"
        " wait_time_ms say which and how long"
    ): """
        hoodie.auto.adjust.lock.configs hoodie.write.lock.client.num_retries
        hoodie.write.lock.client.wait_time_ms_between_retry hoodie.write.lock.heartbeat_interval_ms
        hoodie.write.lock.hivemetastore.database hoodie.write.lock.hivemetastore.table
        hoodie.write.lock.hivemetastore.uris
    """,
    "indexes are built by table.indexes.create and CREATE INDEX, and dropped by table.indexes.drop": """
        hoodie.metadata.auto.delete.partitions hoodie.metadata.auto.initialize hoodie.metadata.index.async
        hoodie.metadata.index.check.timeout.seconds hoodie.metadata.index.expression.enable
        hoodie.metadata.index.secondary.enable
    """,
    "a write stands once it is committed, whatever becomes of the services that follow it": """
        hoodie.fail.on.timeline.archiving hoodie.fail.writes.on.inline.table.service.exception
        hoodie.metadata.write.fail.on.table.service.failures hoodie.post.commit.failures.ignored
        hoodie.write.can.ignore.post.commit.failures
    """,
    "it is of callbacks, which hoodie.write.commit.callback.on has to switch on": """
        hoodie.write.commit.callback.class hoodie.write.commit.callback.http.api.key
        hoodie.write.commit.callback.http.custom.headers hoodie.write.commit.callback.http.timeout.seconds
        hoodie.write.commit.callback.http.url
    """,
    "a bloom filter here has the size that its keys need": """
        hoodie.bloom.index.filter.dynamic.max.entries hoodie.bloom.index.filter.type hoodie.index.bloom.fpp
        hoodie.index.bloom.num_entries
    """,
    "a clean runs within the write that it follows, or when it is called": """
        hoodie.clean.allow.multiple hoodie.clean.async hoodie.clean.async.enabled
        hoodie.clean.multiple.enabled
    """,
    "it is for Hive's readers": """
        hoodie.read.columns.set hoodie.table.ro.file.format hoodie.table.rt.file.format
        hoodie.valid.commits.list
    """,
    "it is of a format that new files here never have": """
        hoodie.hfile.block.size hoodie.hfile.compression.algorithm hoodie.hfile.max.file.size
        hoodie.hfile.writes.allow.duplicates
    """,
    "a rollback finds the files of a write by its markers, or by a listing": """
        hoodie.rollback.avoid.duplicate.plan hoodie.rollback.instant.backup.dir
        hoodie.rollback.using.markers
    """,
    "a write here looks for conflicts when it begins a file and before it commits": """
        hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
        hoodie.write.concurrency.async.conflict.detector.period_ms
        hoodie.write.concurrency.early.conflict.check.commit.conflict
    """,
    "instant times come from the clock of the storage and the table lock": """
        _hoodie.time.generator.reuse.enable hoodie.time.generator.max_expected_clock_skew_ms
        hoodie.time.generator.type
    """,
    "it is of the error table of `drawstring ingest`, which has options of its own for that": """
        hoodie.errortable.validate.targetschema.enable hoodie.errortable.write.class
        hoodie.errortable.write.union.enable
    """,
    "it is for Flink": """
        hoodie.parquet.flink.rowdata.write.support.class hoodie.parquet.write.utc-timezone.enabled
    """,
    "schemas are always changed as the format says": """
        hoodie.avro.schema.external.transformation hoodie.avro.schema.externaltransformation
    """,
    "a failed write is never committed": """
        hoodie.write.ignore.failed
    """,
    "a holder is described by its process, or by hoodie.write.lock.app_id": """
        hoodie.write.application.id
    """,
    "it sizes log blocks in the archive of version 6, which here have all instants of one archiving": """
        hoodie.commits.archival.batch
    """,
    "archiving runs within the write, in its own order": """
        hoodie.archive.async
    """,
    "deleting a key twice in one batch is a single delete": """
        hoodie.combine.before.delete
    """,
    "drawstring never logs values": """
        hoodie.sensitive.config.keys
    """,
    "drawstring never upgrades a table by itself": """
        hoodie.write.auto.upgrade
    """,
    "incremental queries always skip clustering": """
        hoodie.datasource.read.incr.skip_cluster
    """,
    "incremental queries always skip compaction": """
        hoodie.datasource.read.incr.skip_compact
    """,
    "it is for validators of Hudi's ingestion tool": """
        hoodie.precommit.validators.streaming.offset.tolerance.percentage
    """,
    "rows that lack columns are refused; table.columns.drop and ALTER TABLE drop columns": """
        hoodie.datasource.write.schema.allow.auto.evolution.column.drop
    """,
    "schemas are always checked": """
        hoodie.avro.schema.validate
    """,
}
"""By reason the keys."""

_OF_EARLIER_RELEASES: Final[Mapping[str, str]] = {
    "hoodie.assume.date.partitioning": "partitions are found at any depth",
    "hoodie.auto.commit": "a write commits, or leaves the table as it was",
    "hoodie.datasource.read.use.new.parquet.file.format": "it chooses how the Java engine reads files",
    "hoodie.instant.time": "the Java engine sets it itself",
    "hoodie.meta.fields.to.exclude": "it chooses how the Java engine reads files",
    "hoodie.optimized.log.blocks.scan.enable": "it chooses how the Java engine reads files",
    "hoodie.schema.cache.enable": "it chooses what the Java engine keeps in memory",
}
"""Options that Hudi 1.2 no longer has, by key the reason."""


@cache
def options_without_effect() -> Mapping[str, str]:
    """Return the options that have nothing to act on, in lower case, with the reason of each."""
    of_hudi = {key: reason for reason, keys in _KEYS.items() for key in keys.split()}
    return {**of_hudi, **_OF_EARLIER_RELEASES}
