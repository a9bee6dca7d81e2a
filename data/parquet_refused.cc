// SPDX-License-Identifier: Apache-2.0
// Refuses Parquet files in a build without Apache Arrow.
#include "base/error.h"
#include "data/record_formats.h"

namespace syntra {

std::unique_ptr<RecordReader> OpenParquetRecords(const Path& path, const std::string&) {
  Fail(ExitCode::kData,
       "{}: this build of syntra does not read Parquet. Build it with Apache Arrow's C++ libraries "
       "(cmake -DSYNTRA_PARQUET=ON), or convert the file, for example with Python: "
       "pandas.read_parquet(\"in.parquet\").to_json(\"out.jsonl\", orient=\"records\", lines=True)",
       path.string());
}

bool ReadsParquet() { return false; }

}  // namespace syntra
