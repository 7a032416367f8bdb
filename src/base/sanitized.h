/* Whether AddressSanitizer is compiled in, which cannot live under all of confine()'s limits. */
#ifndef ALLOCWATCH_BASE_SANITIZED_H
#define ALLOCWATCH_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
