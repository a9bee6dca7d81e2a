// SPDX-License-Identifier: Apache-2.0
// What an action fails with.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "base/failure.h"

namespace syntra {

// The message of the Error that `action` must throw, with this code. What is thrown where memory
// lacks goes on.
inline std::string ErrorOf(const std::function<void()>& action, ExitCode code) {
  try {
    action();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace syntra
