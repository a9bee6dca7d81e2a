// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.h"

namespace syntra {

std::string ToString(const TensorType& type) {
  std::string text(NameOf(type.dtype));
  text += '[';
  for (int i = 0; i < type.shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(type.shape[i]);
  }
  text += ']';
  if (type.pitch > 0) text += " of " + std::to_string(type.pitch);
  return text;
}

}  // namespace syntra
