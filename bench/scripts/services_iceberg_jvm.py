"""Apache Iceberg's services on Spark. usage: services_iceberg_jvm.py DATA WAREHOUSE JARS [PHASE]"""

from __future__ import annotations

import sys

import iceberg_jvm
from services import SORT_BY, run


class Flat(iceberg_jvm.Peer):
    def append(self, file: str) -> None:
        if self.spark.catalog.tableExists(self.table_sql):
            self.landed(file).writeTo(self.table_sql).append()
        else:
            self.bulk_insert(file)

    def cluster(self) -> None:
        what = f"strategy => 'sort', sort_order => '{SORT_BY}', options => map('rewrite-all', 'true')"
        self.spark.sql(f"call ice.system.rewrite_data_files(table => 'db.rides', {what})").collect()


if __name__ == "__main__":
    run(lambda work: iceberg_jvm.Peer(work, sys.argv[3]), lambda work: Flat(work, sys.argv[3]))
