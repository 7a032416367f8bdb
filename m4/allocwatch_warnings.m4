# ALLOCWATCH_WARNINGS: the warnings this compiler knows, probed once, into WARN_CFLAGS.
AC_DEFUN([ALLOCWATCH_WARNINGS], [
  WARN_CFLAGS=
  for flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
      -Wpointer-arith -Wwrite-strings -Wundef -Wformat=2 -Wvla -Wimplicit-fallthrough; do
    AC_MSG_CHECKING([whether $CC accepts $flag])
    allocwatch_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes]); WARN_CFLAGS="$WARN_CFLAGS $flag"], [AC_MSG_RESULT([no])])
    CFLAGS=$allocwatch_saved
  done
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [warnings are errors])], [], [enable_werror=no])
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
])
