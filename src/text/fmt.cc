// src/text/fmt.cc: the half of fmt that is code, compiled once; all other files include fmt's declarations only.
//
// Why not fmt's header-only mode: it compiles this in every file that formats anything, 2.5 s of 4 s each. Why not Debian's
// libfmt: it is a shared library, and libflhal should need no other library than it has to.
// The instantiations are those that format.h declares `extern`; the linker names any that a newer fmt adds.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template locale_ref::locale_ref(const std::locale&);
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
