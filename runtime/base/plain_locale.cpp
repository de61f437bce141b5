#include "base/plain_locale.h"

namespace st {
namespace {

// glibc's and musl's C locale is a constant: nothing is allocated, so nothing is freed.
locale_t plain() {
  static const locale_t c = newlocale(LC_ALL_MASK, "C", locale_t{});
  return c;
}

}  // namespace

// Without a C locale (no memory, elsewhere) uselocale(0) only asks: the host's stays.
PlainLocale::PlainLocale() : saved_(uselocale(plain())) {}
PlainLocale::~PlainLocale() { uselocale(saved_); }

}  // namespace st
