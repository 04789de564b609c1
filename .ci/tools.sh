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

# Installs packages, as root on Debian or Ubuntu. Where that fails it shows the last lines, without addresses.
apt_install() {
  local log
  ((EUID == 0)) && type -P apt-get >/dev/null || return
  echo "${0##*/}: installing $* with apt-get ..." >&2
  log=$({ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } 2>&1 </dev/null) && return
  tail -n 5 <<<"$log" | sed -E 's#[a-z+]+:/+[^[:space:]]+#(address)#g; s#[0-9]+(\.[0-9]+){3}(:[0-9]+)?#(address)#g' >&2
  return 1
}

# Succeeds when there is a mvn to call; as root on Debian or Ubuntu it installs one.
need_maven() {
  type -P mvn >/dev/null && return
  apt_install maven && type -P mvn >/dev/null && return
  echo "${0##*/}: no mvn found in PATH; install Maven 3.8.7 or newer (https://maven.apache.org)" >&2
  return 1
}

# Fetches Open MPI and MPICH where they are missing and it can, as root on Debian or Ubuntu; the tests that
# need one that is missing are skipped.
want_mpi() {
  local missing=()
  has_mpirun openmpi 'Open MPI|OpenRTE' || missing+=(openmpi-bin)
  has_mpirun mpich 'HYDRA|MPICH' || missing+=(mpich)
  ((${#missing[@]} == 0)) || apt_install "${missing[@]}" ||
    echo "${0##*/}: tests of MPI are skipped for want of ${missing[*]} (packages of Debian; elsewhere openmpi, mpich)" >&2
}

# Whether the mpirun of this name, or a plain one, is of that MPI.
has_mpirun() {
  local each
  for each in "mpirun.$1" "/usr/lib64/$1/bin/mpirun" mpirun; do
    [[ $("$each" --version 2>/dev/null) =~ $2 ]] && return
  done
  return 1
}
