//! Finds libtt and tells Cargo how to link it.
//!
//! `TT_LIB_DIR`, or `TT_LIB_DIR_<target>` with underscores, names the library's directory. Without
//! it, the library is searched in `build` of the source tree around this crate, then in the
//! directory that pkg-config reports for `tt`. `TT_STATIC=1` links libtt.a instead of the shared
//! library.
//!
//! Build scripts of crates that depend on tt-sys get `DEP_TT_LIB_DIR` and `DEP_TT_INCLUDE`.
use std::path::{Path, PathBuf};
use std::process::{exit, Command};
use std::{env, fs};

fn main() {
    let target = env::var("TARGET").unwrap();
    let own_dir = format!("TT_LIB_DIR_{}", target.replace(['-', '.'], "_"));
    println!("cargo:rerun-if-changed=build.rs");
    for name in [&own_dir, "TT_LIB_DIR", "TT_STATIC", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // docs.rs has no libtt, and documentation needs none
    }
    let linkage = Linkage::wanted(&target);
    let named = env::var_os(&own_dir).or_else(|| env::var_os("TT_LIB_DIR"));
    let places = match named {
        Some(dir) => places_of(Path::new(&dir)),
        None => usual_places(&target),
    };
    let mut dirs = places.iter().filter_map(|place| place.dir.as_deref());
    let dir = dirs.find(|dir| dir.join(&linkage.file).exists());
    let dir = dir.unwrap_or_else(|| explain(&linkage.file, &places));
    let dir = dir.canonicalize().expect("the library's directory");
    println!("cargo:rerun-if-changed={}", dir.join(&linkage.file).display());
    println!("cargo:lib_dir={}", dir.display());
    if let Some(include) = include_of(&dir) {
        println!("cargo:include={}", include.display());
    }
    linkage.link(&dir);
}

/// How the library is linked.
struct Linkage {
    is_static: bool,
    /// The file that the linker opens.
    file: String,
    /// The C++ library that libtt.a needs.
    cxx: &'static str,
}
impl Linkage {
    fn wanted(target: &str) -> Linkage {
        let apple = target.contains("apple");
        let is_static = env::var("TT_STATIC").map_or(false, |v| !v.is_empty() && v != "0");
        let extension = match (is_static, apple) {
            (true, _) => "a",
            (false, true) => "dylib",
            (false, false) => "so",
        };
        let cxx = if apple { "c++" } else { "stdc++" };
        Linkage { is_static, file: format!("libtt.{}", extension), cxx }
    }
    fn link(&self, dir: &Path) {
        if self.is_static {
            println!("cargo:rustc-link-search=native={}", dir.display());
            println!("cargo:rustc-link-lib=static:-bundle=tt");
            println!("cargo:rustc-link-lib=dylib={}", self.cxx);
            println!("cargo:rustc-link-lib=dylib=m");
            return;
        }
        // `cargo run` and `cargo test` add OUT_DIR to the library path, but no directory outside
        // the target directory: symlinks in OUT_DIR point to the library.
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
        for name in names_of(dir, &self.file) {
            let link = out.join(&name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(dir.join(&name), link).expect("OUT_DIR takes a link");
        }
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=dylib=tt");
    }
}

/// Returns the names of a shared library: libtt.so and the versioned ones, which programs open.
fn names_of(dir: &Path, file: &str) -> Vec<String> {
    let all = fs::read_dir(dir).expect("the library's directory can be read");
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stem = file.split('.').next().unwrap_or(file);
    let extension = file.rsplit('.').next().unwrap_or("");
    names.filter(|n| n.split('.').next() == Some(stem) && n.contains(extension)).collect()
}

/// A candidate directory and its origin; without a directory, the reason why there is none.
struct Place {
    dir: Option<PathBuf>,
    why: String,
}
impl Place {
    fn new(dir: impl Into<PathBuf>, why: &str) -> Place {
        Place { dir: Some(dir.into()), why: why.into() }
    }
    fn nowhere(why: String) -> Place {
        Place { dir: None, why }
    }
}

/// Returns the candidates for a directory named by the user. A relative one is resolved against the
/// directory in which cargo was called, then against the ancestors of OUT_DIR, such as the
/// workspace.
fn places_of(dir: &Path) -> Vec<Place> {
    if dir.is_absolute() {
        return vec![Place::new(dir, "TT_LIB_DIR")];
    }
    let called = env::var_os("PWD").map(PathBuf::from);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let bases = called.into_iter().chain(out.ancestors().map(PathBuf::from));
    bases.map(|base| Place::new(base.join(dir), "TT_LIB_DIR, which is relative")).collect()
}

/// Returns the default candidates. Cross builds search pkg-config only, if PKG_CONFIG_ALLOW_CROSS
/// is set.
fn usual_places(target: &str) -> Vec<Place> {
    let mut places = vec![];
    if env::var("HOST").map_or(false, |host| host == target) {
        let tree = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../../build");
        places.push(Place::new(tree, "the source tree's build"));
    } else {
        println!("cargo:rerun-if-env-changed=PKG_CONFIG_ALLOW_CROSS");
        if env::var_os("PKG_CONFIG_ALLOW_CROSS").is_none() {
            let why = format!("{} is another target than this machine: set TT_LIB_DIR", target);
            return vec![Place::nowhere(why)];
        }
    }
    places.push(pkg_config());
    places
}

fn pkg_config() -> Place {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    match Command::new(program).args(["--variable=libdir", "tt"]).output() {
        Ok(done) if done.status.success() => {
            Place::new(String::from_utf8_lossy(&done.stdout).trim(), "pkg-config tt")
        }
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stderr);
            Place::nowhere(format!("pkg-config tt: {}", text.lines().next().unwrap_or("failed")))
        }
        Err(e) => Place::nowhere(format!("pkg-config: {}", e)),
    }
}

/// Returns the directory of tt.h: next to that of the library, or in the source tree.
fn include_of(dir: &Path) -> Option<PathBuf> {
    let tree = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../../../include");
    let installed = dir.ancestors().skip(1).take(2).map(|up| up.join("include"));
    let include = installed.chain([tree]).find(|include| include.join("tt.h").exists())?;
    include.canonicalize().ok()
}

fn explain(file: &str, places: &[Place]) -> ! {
    eprintln!("tt-sys: {} was not found. Searched:", file);
    for place in places {
        let dir = place.dir.as_deref().unwrap_or_else(|| Path::new("nowhere"));
        eprintln!("  {} ({})", dir.display(), place.why);
    }
    eprintln!("Build tt (./dev build), install it where pkg-config finds it, or set TT_LIB_DIR to");
    eprintln!("the library's directory.");
    exit(1)
}
