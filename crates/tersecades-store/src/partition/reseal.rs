//! Checksums made right, for tests that look behind them.

use tersecades_columnar::error::{Error, Result};

use super::footer::{FOOTER_BYTES, Footer, FooterPlace};
use super::layout::{LAYOUTS, layout_of_id};

/// Makes the checksums of footer and index what their bytes need.
///
/// # Errors
/// Bytes without a footer, or whose index cannot be found.
pub fn reseal(container: &mut [u8]) -> Result<()> {
    let missing = || Error::corrupt("there is no footer, or no index where it says");
    for framing in LAYOUTS.iter().map(|layout| layout.framing()) {
        let Some(place) = FooterPlace::of(framing, container.len() as u64) else {
            continue;
        };
        let range = place.payload as usize..place.payload as usize + FOOTER_BYTES;
        let mut bytes = [0; FOOTER_BYTES];
        bytes.copy_from_slice(&container[range.clone()]);
        if !Footer::is_here(&bytes) {
            continue;
        }
        Footer::reseal(&mut bytes);
        let footer = Footer::decode(&bytes)?;
        let framing = layout_of_id(footer.layout)?.framing();
        let start = usize::try_from(footer.index_at).map_err(|_| missing())?;
        let frames = container.get(start..place.frame as usize);
        let mut frames = frames.ok_or_else(missing)?;
        let mut payload = Vec::new();
        while let Some(piece) = framing.reveal(&mut frames) {
            payload.extend_from_slice(piece);
        }
        Footer::reseal_index(&mut bytes, &payload);
        container[range].copy_from_slice(&bytes);
        return Ok(());
    }
    Err(missing())
}
