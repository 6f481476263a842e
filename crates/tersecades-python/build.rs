//! What the linker needs for an extension module: on macOS, that symbols may be missing.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
