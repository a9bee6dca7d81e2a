// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"

namespace syntra {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      parts.emplace_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return parts;
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string JoinFirst(std::span<const std::string> names, size_t most) {
  if (names.size() <= most) return Join(names, ", ");
  return fmt::format("{} and {} more", Join(names.first(most), ", "), names.size() - most);
}

std::string_view StripSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> two_back, previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = previous[j - 1] + (a[i - 1] != b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], two_back[j - 2] + 1);
      }
    }
    two_back = previous;
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string NearestName(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    // At least as many insertions or deletions; names from outside may be long.
    const auto difference = std::abs(std::ssize(name) - std::ssize(candidate));
    if (difference >= best_distance) continue;
    const int distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string WithThousands(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

namespace {
std::string Scaled(double value, double base, std::span<const char* const> units) {
  size_t unit = 0;
  while (std::abs(value) >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0])
                   : fmt::format("{:.1f}{}", value, units[unit]);
}
}  // namespace

std::string Counted(int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", WithThousands(count), thing, count == 1 ? "" : "s");
}

std::string HumanBytes(double bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return Scaled(bytes, 1024, kUnits);
}

std::string HumanCount(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  return Scaled(count, 1000, kUnits);
}

std::string HumanFlops(double flops) {
  static constexpr const char* kUnits[] = {" FLOP/s",  " kFLOP/s", " MFLOP/s",
                                           " GFLOP/s", " TFLOP/s", " PFLOP/s"};
  return Scaled(flops, 1000, kUnits);
}

std::string HumanDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const int64_t total = std::llround(seconds);
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  if (total < 86400) return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
  return fmt::format("{}d{:02}h", total / 86400, total / 3600 % 24);
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

std::string XmlText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return escaped;
}

std::string ShellWord(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> WrapText(std::string_view text, size_t columns) {
  columns = std::max<size_t>(columns, 1);
  std::vector<std::string> lines{""};
  for (std::string word : Split(text, ' ')) {
    if (word.empty()) continue;
    const size_t used = CodePointCount(lines.back());
    if (used > 0 && used + 1 + CodePointCount(word) > columns) lines.emplace_back();
    while (CodePointCount(word) > columns) {
      size_t bytes = word.size();
      while (CodePointCount(word.substr(0, bytes)) > columns) --bytes;
      lines.back() = word.substr(0, bytes);
      word.erase(0, bytes);
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string Printable(std::string_view text, int most) {
  std::string printable;
  while (!text.empty()) {
    if (most-- <= 0) return printable + "...";
    const auto first = FirstCharacter(text);
    const size_t bytes = first ? first->bytes : 1;
    // C0 and C1 of ISO 6429, and DEL between them.
    const bool is_control =
        first && (first->code < 0x20 || (first->code >= 0x7F && first->code < 0xA0));
    for (const char byte : text.substr(0, bytes)) {
      if (!first || is_control) {
        printable += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      } else {
        printable += byte;
      }
    }
    text.remove_prefix(bytes);
  }
  return printable;
}

std::string FittingLine(std::string_view text, int columns) {
  constexpr int kDots = 3;
  const std::string printable = Printable(text);
  if (static_cast<int>(CodePointCount(printable)) <= columns) return printable;
  if (columns > kDots) return Printable(printable, columns - kDots);
  return std::string(std::max(columns, 0), '.');
}

bool ParseInt64(std::string_view text, int64_t* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

bool ParseDouble(std::string_view text, double* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (end != text.data() + text.size()) return false;
  if (code != std::errc::result_out_of_range) return code == std::errc();
  *value = std::strtod(std::string(text).c_str(), nullptr);  // infinite, or 0
  return std::isfinite(*value);
}

}  // namespace syntra
