# SPDX-License-Identifier: MIT
# hakmem for Nix: `nix-build packaging/nix`, or callPackage of this file.
{ lib
, stdenv
, cmake
, elfutils
, libiberty
, ninja
, protobufc
, zlib
}:

stdenv.mkDerivation {
  pname = "hakmem";
  version = "0.1.0";

  # What was built here before is no source.
  src = lib.cleanSourceWith {
    src = lib.cleanSource ../..;
    filter = path: type: !(type == "directory" && baseNameOf path == "out");
  };

  nativeBuildInputs = [ cmake ninja protobufc ];
  buildInputs = [ elfutils libiberty protobufc zlib ];

  # The command finds the library by its own place, so that they stay in one output.
  cmakeBuildType = "None";
  cmakeFlags = [
    "-DCMAKE_INSTALL_BINDIR=bin"
    "-DCMAKE_INSTALL_LIBDIR=lib"
    "-DCMAKE_INSTALL_INCLUDEDIR=include"
    "-DHAKMEM_TESTS="
  ];

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/hakmem run --strict $out/bin/hakmem --version
  '';

  meta = {
    description = "Drop-in malloc, with a command to run and examine programs";
    homepage = "https://example.org/hakmem";
    license = lib.licenses.mit;
    platforms = [ "x86_64-linux" "aarch64-linux" "riscv64-linux" ];
    mainProgram = "hakmem";
  };
}
