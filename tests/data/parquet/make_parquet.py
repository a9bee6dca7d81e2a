# SPDX-License-Identifier: Apache-2.0
"""Writes the Parquet files that parquet_test.cc reads, with pyarrow (made with 26.0.1).

    python3 -m venv venv && venv/bin/pip install pyarrow && venv/bin/python tests/data/parquet/make_parquet.py
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent

# Three row groups, dictionary pages and plain ones, a null, an empty text, characters of several bytes.
texts = [f"document {i}" for i in range(20)] + [None, "", "zwölf Boxkämpfer", "same", "same", "same"]
table = pa.table(
    {
        "id": pa.array(range(len(texts)), pa.int64()),
        "text": pa.array(texts, pa.string()),
        "meta": pa.array([{"lang": "en"}] * len(texts), pa.struct([("lang", pa.string())])),
        "tags": pa.array([["a", "b"]] * len(texts), pa.list_(pa.string())),
    }
)
pq.write_table(table, HERE / "documents.parquet", row_group_size=10, compression="snappy", write_page_checksum=True)

# No value may be missing, and Zstandard in the place of Snappy.
required = pa.schema([pa.field("content", pa.string(), nullable=False)])
pq.write_table(
    pa.table({"content": ["one", "two"]}, schema=required), HERE / "required.parquet", compression="zstd"
)
