#include "base/plain_locale.h"

namespace st {
namespace {

// The C locale of glibc and musl is a constant: nothing is allocated, so nothing is freed.
locale_t plain() {
  static const locale_t c = newlocale(LC_ALL_MASK, "C", locale_t{});
  return c;
}

}  // namespace

// If newlocale fails, uselocale(0) changes nothing and the host's locale stays.
PlainLocale::PlainLocale() : saved_(uselocale(plain())) {}
PlainLocale::~PlainLocale() { uselocale(saved_); }

}  // namespace st
