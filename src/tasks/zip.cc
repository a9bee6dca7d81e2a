// SPDX-License-Identifier: Apache-2.0
#include "tasks/zip.h"

#include <zip.h>

#include <memory>

#include "base/error.h"

namespace syntra {
namespace {

// 1 January 1980, 0:00, in the bits of MS-DOS.
constexpr zip_uint16_t kFirstDay = 1 << 5 | 1, kMidnight = 0;
constexpr zip_uint32_t kFileMode = 0100644u << 16;  // rw-r--r--

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;
using Source = std::unique_ptr<zip_source_t, FreeSource>;

void Require(bool good, zip_error_t* error) {
  if (!good) Fail(ExitCode::kResources, "cannot make a zip archive: {}", zip_error_strerror(error));
}

void Add(zip_t* archive, const ZipMember& member) {
  zip_error_t* error = zip_get_error(archive);
  Source source(zip_source_buffer(archive, member.content.data(), member.content.size(), 0));
  Require(source != nullptr, error);
  const zip_int64_t index = zip_file_add(archive, member.name.c_str(), source.get(), 0);
  Require(index >= 0, error);
  static_cast<void>(source.release());  // the archive's now
  Require(zip_file_set_dostime(archive, index, kMidnight, kFirstDay, 0) == 0, error);
  Require(zip_file_set_external_attributes(archive, index, 0, ZIP_OPSYS_UNIX, kFileMode) == 0,
          error);
}

std::string ContentOf(zip_source_t* source) {
  zip_error_t* error = zip_source_error(source);
  Require(zip_source_open(source) == 0, error);
  zip_stat_t stat;
  Require(zip_source_stat(source, &stat) == 0, error);
  std::string content(stat.size, '\0');
  const zip_int64_t read = zip_source_read(source, content.data(), content.size());
  zip_source_close(source);
  Require(read == static_cast<zip_int64_t>(content.size()), error);
  return content;
}

}  // namespace

std::string ZipOf(std::span<const ZipMember> members) {
  zip_error_t error;
  zip_error_init(&error);
  const Source bytes(zip_source_buffer_create(nullptr, 0, 0, &error));
  Require(bytes != nullptr, &error);
  Archive archive(zip_open_from_source(bytes.get(), ZIP_TRUNCATE, &error));
  Require(archive != nullptr, &error);
  zip_source_keep(bytes.get());  // beyond the archive, which owns it from here on
  for (const ZipMember& member : members) Add(archive.get(), member);
  Require(zip_close(archive.get()) == 0, zip_get_error(archive.get()));
  static_cast<void>(archive.release());
  return ContentOf(bytes.get());
}

}  // namespace syntra
