# shellcheck shell=bash
# Sourced by comm-cli and verify: finds a JDK 25 or newer, and Maven.

# Prints the home of the first such JDK; fails when there is none.
find_jdk() {
  local home version on_path
  on_path=$(readlink -f "$(type -P java)" 2>/dev/null)
  for home in "${JAVA_HOME:-}" "${on_path%/bin/java}" /usr/lib/jvm/* /opt/* /opt/*/* \
      ~/.sdkman/candidates/java/* ~/.jdks/* /Library/Java/JavaVirtualMachines/*/Contents/Home; do
    [[ -x $home/bin/javac && -r $home/release ]] || continue
    version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release")
    if ((${version:-0} >= 25)); then
      printf '%s\n' "$home"
      return
    fi
  done
  echo "${0##*/}: no JDK 25 or newer found in JAVA_HOME, PATH, /usr/lib/jvm, /opt, .sdkman or .jdks;" \
    "install one (for example Eclipse Temurin 25 from https://adoptium.net) or set JAVA_HOME" >&2
  return 1
}

# Succeeds when there is a mvn to call; as root on Debian or Ubuntu it installs one.
need_maven() {
  type -P mvn >/dev/null && return
  if ((EUID == 0)) && type -P apt-get >/dev/null; then
    echo "${0##*/}: installing Maven with apt-get ..." >&2
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends maven; } \
      >/dev/null && type -P mvn >/dev/null && return
  fi
  echo "${0##*/}: no mvn found in PATH; install Maven 3.8.7 or newer (https://maven.apache.org)" >&2
  return 1
}
