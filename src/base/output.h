// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, which a user may have closed, sent to a full disk or to a
// program that has ended.
#pragma once

#include <string>
#include <string_view>

namespace syntra {

// Opens those of the descriptors 0 to 2 that are closed on /dev/null. Else the first files that
// the program opens would take these numbers, and messages would land in them. For main to begin
// with.
void OpenStandardDescriptors();

// Writes all of `text`, in as many calls as it takes; false, with errno, if that fails.
bool WriteAll(int descriptor, std::string_view text) noexcept;

// Each line of `text` as Printable has it: a message may have several, and each may hold what came
// from outside.
std::string PrintableLines(std::string_view text);

// Prints "error: ", unless `message` begins with it, and the message on standard error, behind
// `prefix`, as PrintableLines. Never throws: an error that cannot be printed is lost.
void PrintError(std::string_view message, std::string_view prefix = "") noexcept;
// The same without "error: ".
void PrintNote(std::string_view text) noexcept;

// Hands what was printed (fmt::print, std::cout) to standard output. Throws Error(kResources) if
// it, or any part of it before, was not taken.
void FlushOutput();

// Ends the process by SIGPIPE, as the convention is, if printing failed because the reader of
// standard output is gone: nobody wants the rest, and nothing has to be said.
void EndIfReaderIsGone();

}  // namespace syntra
