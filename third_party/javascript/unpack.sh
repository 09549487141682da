#!/usr/bin/env bash
# Unpacks Debian's packages of D3 and dagre into FOLDER, without installing them: they are single scripts here, but
# depend on 250 packages that would build and test them. Needs apt, no root; 0.3 MB.
#   third_party/javascript/unpack.sh FOLDER
set -euo pipefail
folder=$1
if [ -d "$folder" ]; then exit; fi

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -q -o APT::Sandbox::User= -o Acquire::Retries=0 -o Acquire::http::Timeout=20 download node-d3 node-dagre-layout
for package in *.deb; do dpkg-deb --extract "$package" root; done
mv root "$folder"
