// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, which a user may have closed, sent to a full disk or to a
// program that has ended.
#pragma once

#include <string>
#include <string_view>

namespace syntra {

// Opens /dev/null on each of the descriptors 0 to 2 that is closed. Otherwise the first files that
// the program opens would get these numbers, and messages would be written into them. The first
// call of main.
void OpenStandardDescriptors();

// Writes all of `text`, in as many calls as it takes. If that fails, returns false and sets errno.
bool WriteAll(int descriptor, std::string_view text) noexcept;

// `text` with each of its lines made printable (text.h): a message may have several lines, and any
// of them may hold text from outside.
std::string PrintableLines(std::string_view text);

// Prints "error: ", unless `message` begins with it, and the message on standard error, after
// `prefix`, as PrintableLines, on lines of its own below the status line (terminal.h). Never
// throws: an error that cannot be printed is lost.
void PrintError(std::string_view message, std::string_view prefix = "") noexcept;
// As PrintError, without "error: ".
void PrintNote(std::string_view text) noexcept;

// Flushes what was printed (fmt::print, std::cout) to standard output. Throws Error(kResources) if
// that fails or if writing failed before.
void FlushOutput();

// If printing failed because the reader of standard output is gone, ends the process by SIGPIPE, as
// is the convention. Nobody wants the rest, so there is no message.
void EndIfReaderIsGone();

}  // namespace syntra
