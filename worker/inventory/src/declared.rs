//! Hardware declared by an operator instead of probed (compatibility §17.2).

use atlas_types::{Architecture, Gpu, Inventory};

/// The values of the flags. Amounts are in GB, as in the flags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeclaredHardware {
    pub gpus: Option<u32>,
    /// `--gpu-vram`, one number per GPU. A GPU after the end of the list has an unknown amount. This list alone does
    /// not count as a declaration.
    pub gpu_vram_gb: Vec<u64>,
    /// `--pool-memory`.
    pub memory_gb: Option<u64>,
    /// `--pool-cpus`.
    pub cores: Option<u32>,
    /// `--pool-arch`; `any` is none.
    pub architecture: Option<Architecture>,
    /// `--pool-device`.
    pub devices: Vec<String>,
}

impl DeclaredHardware {
    /// The inventory that the flags declare. None if no flag was given, in which case the machine is probed.
    pub fn inventory(&self) -> Option<Inventory> {
        if (Self { gpu_vram_gb: Vec::new(), ..self.clone() }) == Self::default() {
            return None;
        }
        let gpus = (0..self.gpus.unwrap_or(0)).map(|index| Gpu {
            index,
            uuid: String::new(),
            vendor: String::new(),
            model: "declared".to_owned(),
            memory_bytes: self.gpu_vram_gb.get(index as usize).map_or(0, |gb| gb.saturating_mul(1 << 30)),
            mig_profile: None,
            healthy: true,
        });
        Some(Inventory {
            cores: self.cores.unwrap_or(0),
            memory_bytes: self.memory_gb.unwrap_or(0).saturating_mul(1 << 30),
            architecture: self.architecture,
            gpus: gpus.collect(),
            devices: self.devices.clone(),
            places: 4,
            declared: true,
            ..Inventory::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_is_no_declaration() {
        assert_eq!(DeclaredHardware::default().inventory(), None);
        assert_eq!(DeclaredHardware { gpu_vram_gb: vec![16], ..DeclaredHardware::default() }.inventory(), None);
    }

    #[test]
    fn gpus_beyond_the_list_have_an_unknown_amount() {
        let declared = DeclaredHardware { gpus: Some(2), gpu_vram_gb: vec![16], ..DeclaredHardware::default() };
        let inventory = declared.inventory().expect("declared");
        let memory: Vec<_> = inventory.gpus.iter().map(|gpu| gpu.memory_bytes >> 30).collect();
        assert_eq!((memory, inventory.declared, inventory.cores), (vec![16, 0], true, 0));
    }
}
