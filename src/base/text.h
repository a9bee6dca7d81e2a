// SPDX-License-Identifier: Apache-2.0
// Text for people: suggestions for misspelt names, sizes, durations, counts.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
// "a, b and 9 more": of more than `most` names the first ones.
std::string JoinFirst(std::span<const std::string> names, size_t most);
std::string_view StripSpace(std::string_view text);

// Damerau-Levenshtein distance (optimal string alignment): insert, delete, replace, swap
// neighbours.
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, or "" if none is within max(2, length / 3) edits.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// "; did you mean \"x\"?" or "" when nothing is near.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

std::string WithThousands(int64_t value);   // 12345 -> "12,345"
std::string HumanBytes(double bytes);       // 1536 -> "1.5 KiB"
std::string HumanCount(double count);       // 41234 -> "41.2k"
std::string HumanFlops(double flops);       // in a second: 1.18e11 -> "118.0 GFLOP/s"
std::string HumanDuration(double seconds);  // 11520 -> "3h12m"; not finite -> "?"
// "1 file", "12,345 files": of a thing whose plural takes an s.
std::string Counted(int64_t count, std::string_view thing);

// `text`, cut after `most` characters, with nothing in it that could command a terminal: control
// characters, line ends among them, and bytes that are not UTF-8 read "\x1b". For what comes from
// outside.
std::string Printable(std::string_view text, int most = std::numeric_limits<int>::max());
// `text` with spaces instead of its line breaks.
std::string OneLine(std::string_view text);
// `text` as Printable, in at most `columns` characters: of a longer one the beginning and "...".
std::string FittingLine(std::string_view text, int columns);
// `text` between the tags of XML or HTML, or inside the quotes of an attribute.
std::string XmlText(std::string_view text);
// A word as a shell reads it back, in quotes where it needs them.
std::string ShellWord(std::string_view word);

// Lines of at most `columns` characters, cut between words; a longer word is cut in two.
std::vector<std::string> WrapText(std::string_view text, size_t columns);

// Parse the whole of `text` as a number, independent of locale; false if it is not one, or too
// large. What is too near to 0 for a double is 0.
bool ParseInt64(std::string_view text, int64_t* value);
bool ParseDouble(std::string_view text, double* value);

}  // namespace syntra
