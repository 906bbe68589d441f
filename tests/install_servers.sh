#!/usr/bin/env bash
# Install what slow tests run against, from Debian 12 and 13, in the versions that they were written for:
#   docker-registry, skopeo   with apt-get, which needs root
#   nginx                     with apt-get: a remote store
#   slurmctld, slurmd         with apt-get: a cluster of one node, which tests start in a folder
#   zsh, fish, graphviz       with apt-get: shells that complete names, diagrams of the docs' site
#   oras                      unpacked into a folder of its own: it stands alone
#   chromium, libpython       with apt-get; Triton's Python backend loads the library of the Python that runs the tests
#   nodejs, npm               with apt-get, unless a node and an npm are there; npm's packages of tests/npm in that folder
#   ONNX Runtime's headers    unpacked into that folder, by the script that C++ packages hold
# Debian's security updates replace versions: where one is gone, the version that is there is installed, with a message.
# Without root or apt-get the script says what is missing, and installs the rest. Tests that miss a program are
# skipped by name. Usage: tests/install_servers.sh [FOLDER for what is unpacked]
set -euo pipefail
REGISTRY=docker-registry=2.8.2+ds1-1 SKOPEO=skopeo=1.9.3+ds1-1+b10 ORAS=1.2.0-1+b9
SHELLS=(zsh=5.9-4+b15 fish=3.6.0-3.1+deb12u1 graphviz=2.42.2-7+deb12u1)
NGINX=nginx=1.22.1-9+deb12u11
SLURM=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins)
CHROMIUM=chromium=156.0.8078.79-1~deb12u1
NODE=(nodejs=18.20.4+dfsg-1~deb12u3 npm=9.2.0~ds1-1)
LIBPYTHON_311=3.11.2-6+deb12u9
HERE=$(dirname "$0")
FOLDER=${1:-$HERE/../.servers}

installed() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true; }
is_root() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# Install NAME=VERSION...: in these versions, or else in those that are there.
install() {
    local names=("${@%%=*}") quiet=(-q -y --no-install-recommends)
    [[ -n ${updated:-} ]] || { apt-get update -q && updated=yes; }
    # The package of a registry would start one, and enable it: it is only to be there.
    RUNLEVEL=1 apt-get install "${quiet[@]}" "$@" && return
    if RUNLEVEL=1 apt-get install "${quiet[@]}" "${names[@]}"; then
        echo "not there any more: $*; installed instead: $(dpkg-query -W -f '${Package}=${Version} ' "${names[@]}")" >&2
    else
        echo "can't be installed: ${names[*]}; tests that need them are skipped" >&2
    fi
}

# Install what is not there in these versions.
pinned() {
    local each
    for each in "$@"; do
        [[ $(installed "${each%%=*}") == "${each#*=}" ]] || { install "$@"; return; }
    done
}

unpack_oras() {
    local lists mirror key
    lists=$(mktemp -d)
    trap 'rm -rf "$lists"' RETURN
    chmod 755 "$lists"
    mkdir -p "$lists/state/partial" "$lists/cache/archives/partial"
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' | sed -n 's/^Debian //p' | grep -v security | sort -u | head -1)
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] $mirror trixie main" >"$lists/sources.list"
    local trixie=(-o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$lists/state" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root)
    apt-get "${trixie[@]}" update -q
    (cd "$lists" && apt-get "${trixie[@]}" download -q "oras=$ORAS")
    mkdir -p "$FOLDER"
    dpkg -x "$lists"/oras_*.deb "$FOLDER"
}

libpython=libpython$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
has_libpython() { ldconfig -p | grep -q "$libpython.so.1.0"; }

if is_root; then
    pinned "$REGISTRY" "$SKOPEO"
    pinned "${SHELLS[@]}"
    command -v nginx >/dev/null || install "$NGINX"
    command -v slurmctld >/dev/null || install "${SLURM[@]/%/=22.05.8-4+deb12u3}"
    [[ -n $(installed chromium) ]] || install "$CHROMIUM"
    command -v node >/dev/null && command -v npm >/dev/null || install "${NODE[@]}"
    if ! has_libpython; then
        [[ $libpython == libpython3.11 ]] && install "$libpython=$LIBPYTHON_311" || install "$libpython"
    fi
    [[ -x $FOLDER/usr/bin/oras ]] || unpack_oras || echo "oras $ORAS can't be installed; its tests are skipped" >&2
else
    missing=()
    for each in docker-registry skopeo nginx slurmctld zsh fish dot chromium node npm; do
        command -v "$each" >/dev/null || missing+=("$each")
    done
    [[ -x $FOLDER/usr/bin/oras ]] || missing+=(oras)
    has_libpython || missing+=("$libpython")
    if [[ ${#missing[@]} != 0 ]]; then
        echo "missing: ${missing[*]}; tests that need them are skipped. Run $0 as root on Debian to install them" >&2
    fi
fi

bash "$HERE/../onnxbuild/onnxkit/cpp/templates/fetch_headers.sh.j2" "$FOLDER/onnxruntime-headers" ||
    echo "ONNX Runtime's headers can't be fetched; tests that compile are skipped" >&2

if command -v npm >/dev/null && ! cmp -s "$HERE/npm/package-lock.json" "$FOLDER/npm/package-lock.json"; then
    rm -rf "$FOLDER/npm.tmp"
    mkdir -p "$FOLDER"
    cp -r "$HERE/npm" "$FOLDER/npm.tmp"
    if (cd "$FOLDER/npm.tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); then
        rm -rf "$FOLDER/npm"
        mv "$FOLDER/npm.tmp" "$FOLDER/npm"
    else
        echo "npm's packages can't be installed; tests that need a browser or TypeScript are skipped" >&2
    fi
fi
