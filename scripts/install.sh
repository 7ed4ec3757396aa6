#!/bin/sh
# Installs into an environment: sh scripts/install.sh PYTHON ARGUMENT…
# uv does it in a fraction of pip's time, with what pip's configuration says of indexes and certificates; where uv cannot, pip does.
python=$1
shift
configured() { echo $("$python" -m pip config get "global.$1" 2>/dev/null); }
given() { [ -n "$2" ] && export "$1=$2"; }
[ -n "$UV_DEFAULT_INDEX" ] || given UV_DEFAULT_INDEX "${PIP_INDEX_URL:-$(configured index-url)}"
[ -n "$UV_INDEX" ] || given UV_INDEX "${PIP_EXTRA_INDEX_URL:-$(configured extra-index-url)}"
[ -n "$UV_FIND_LINKS" ] || given UV_FIND_LINKS "$(echo ${PIP_FIND_LINKS:-$(configured find-links)} | tr " " ,)"
[ -n "$UV_CONSTRAINT" ] || given UV_CONSTRAINT "${PIP_CONSTRAINT:-$(configured constraint)}"
# The best version of all indexes, as pip takes it; uv alone would look no further than the first index that has the package.
[ -n "$UV_INDEX_STRATEGY" ] || given UV_INDEX_STRATEGY unsafe-best-match
[ -n "$SSL_CERT_FILE" ] || given SSL_CERT_FILE "${PIP_CERT:-$(configured cert)}"
"$(dirname "$python")/uv" pip install --quiet --python "$python" "$@" && exit
echo "uv could not install this: pip does" >&2
# Groups of dependencies are known to pip since 25.1.
"$python" -m pip install -qq --upgrade "pip>=25.1" && "$python" -m pip install -qq "$@"
