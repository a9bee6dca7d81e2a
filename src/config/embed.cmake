# SPDX-License-Identifier: Apache-2.0
# Writes the bytes of INPUT as a C++ array to OUTPUT.
file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"config/schema_descriptors.h\"

namespace syntra {
const unsigned char kSchemaDescriptors[] = {${bytes}};
const size_t kSchemaDescriptorsSize = ${size};
}  // namespace syntra
")
