// csrc/vendor_ops.h: operators that only a plugin knows, as operators of torch.
#pragma once

#include <string>

namespace torch_fl {

// Makes `schema`, as the plugin's op_describe wrote it, the operator `space`::`op` with its out= overload, and `vendor_name` what
// flhal is asked for when it is called on a chip. Where torch has the operator already (the maker's Python package defined it)
// its schema and shape function stay, and only the chip's kernel is added. Raises for a schema that cannot be one, with its text.
// Called any number of times; the first one counts.
void define_vendor_op(const std::string& space, const std::string& op, const std::string& vendor_name, const std::string& schema);

}  // namespace torch_fl
