// SPDX-License-Identifier: Apache-2.0
#include "nn/scope.h"

namespace syntra {

Value Scope::Parameter(const std::string& name, Shape shape, Initializer initializer,
                       bool trainable, int64_t redraw_every) const {
  const std::string full = prefix_.empty() ? name : prefix_ + '/' + name;
  const syntra::Parameter* known = recording_->parameters.Find(full);
  if (!known) {
    SYNTRA_CHECK(recording_->declares != nullptr, "no parameter {}", full);
    known = &recording_->declares->Declare({full, shape, initializer, trainable, redraw_every});
  }
  SYNTRA_CHECK(known->shape == shape, "{} is {}, used as {}", full, ToString(known->shape),
               ToString(shape));
  return program().Parameter(*known);
}

}  // namespace syntra
