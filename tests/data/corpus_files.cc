// SPDX-License-Identifier: Apache-2.0
#include "tests/data/corpus_files.h"

#include <isa-l/igzip_lib.h>

#include <fstream>

#include "data/example.pb.h"

namespace syntra {

Path WriteScratch(const Path& path, std::string_view content) {
  // Not synced: hundreds of small damaged files are written.
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  return path;
}

std::string Gzip(std::string_view text) {
  std::string out(text.size() + 4096, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(stream.total_out);
  return out;
}

std::string TfExample(const std::string& feature, std::string_view value) {
  tfrecord::Example example;
  (*example.mutable_features()->mutable_feature())[feature].mutable_bytes_list()->add_value(
      std::string(value));
  return example.SerializeAsString();
}

Path SamplePath(std::string_view name) { return Path(SYNTRA_SOURCE_DIR) / "data/sample" / name; }

Path SharedDataPath() {
  for (const char* place : {"../shared/data", "../../shared/data"}) {
    const Path path = Path(SYNTRA_SOURCE_DIR) / place;
    if (std::filesystem::exists(path / "ORIGIN.md")) return path;
  }
  return {};
}

}  // namespace syntra
