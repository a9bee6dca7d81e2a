// SPDX-License-Identifier: Apache-2.0
#include "tests/hosts/virtual_hosts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"

namespace syntra {
namespace {

constexpr const char* kScript = SYNTRA_SOURCE_DIR "/tests/hosts/virtual_hosts";

int64_t Number(const std::string& text) {
  int64_t number = -1;
  EXPECT_TRUE(ParseInt64(text, &number)) << text;
  return number;
}

// Of "node1:2,node2:2".
int64_t CountRanks(const std::string& hosts) {
  int64_t ranks = 0;
  for (const std::string& host : Split(hosts, ',')) ranks += Number(Split(host, ':').at(1));
  return ranks;
}

}  // namespace

VirtualHosts::VirtualHosts(Path folder, int count) : folder_(std::move(folder)) {
  std::string command = fmt::format("{} {} up", kScript, folder_.string());
  for (int i = 1; i <= count; ++i) command += fmt::format(" node{}", i);
  // "e": the programs that the test starts must not keep it open.
  keeps_up_ = popen(command.c_str(), "we");
  const auto has = [&](const char* name) { return std::filesystem::exists(folder_ / name); };
  EXPECT_TRUE(WaitUntil([&] { return has("ready") || has("missing"); })) << folder_;
}

VirtualHosts::~VirtualHosts() { pclose(keeps_up_); }

std::string VirtualHosts::missing() const {
  return ReadOwnFile(folder_ / "missing", 1000).value_or("");
}

StartOptions VirtualHosts::Start(const std::string& hosts,
                                 const std::vector<std::string>& environment,
                                 const std::vector<std::string>& options) const {
  const std::string first = hosts.substr(0, hosts.find(':'));
  std::vector<std::string> words{kScript, folder_.string(), "run", first};
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add({SYNTRA_SOURCE_DIR "/launch/ranks", std::to_string(CountRanks(hosts)), "--host", hosts});
  add({"--mca", "plm_rsh_agent", fmt::format("{} {} rsh", kScript, folder_.string())});
  // Of each host, not of the test.
  add({"--mca", "btl_vader_backing_directory", "/dev/shm"});
  for (const std::string& variable : environment) add({"-x", variable});
  add(options);
  return {.wrapper = words};
}

std::string VirtualHosts::Do(const std::string& action) const {
  FILE* pipe = popen(fmt::format("{} {} {}", kScript, folder_.string(), action).c_str(), "re");
  std::string output;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe)) output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << action;
  return std::string(StripSpace(output));
}

void VirtualHosts::Signal(const std::string& host, const std::string& signal) const {
  Do(fmt::format("signal {} {}", host, signal));
}
void VirtualHosts::Unplug(const std::string& host) const { Do("unplug " + host); }
void VirtualHosts::Plug(const std::string& host) const { Do("plug " + host); }
void VirtualHosts::PowerOff(const std::string& host) const {
  Unplug(host);
  EXPECT_TRUE(WaitUntil([&] {
    Signal(host, "KILL");
    return Processes(host) == 0;
  }));
}
void VirtualHosts::Limit(const std::string& host, int64_t bits) const {
  Do(fmt::format("limit {} {}bit", host, bits));
}
int64_t VirtualHosts::Sent(const std::string& host) const { return Number(Do("sent " + host)); }
int64_t VirtualHosts::Processes(const std::string& host) const {
  return Number(Do("count " + host));
}

}  // namespace syntra
