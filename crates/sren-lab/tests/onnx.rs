//! Every architecture and equivariance group as an ONNX file, run by another engine: it gives what the
//! network gives. Weights and running averages are random, so that nothing cancels.

use sren::export::{Layout, Output, Taps};
use sren::models::{
    Architecture, BackboneConfig, CanonicalConfig, ConvLayerConfig, HeadConfig, LogPolarConfig,
    NetworkConfig, OrientationHeadConfig,
};
use sren::{Equivariance, Weights};
use sren_lab::inference::{ExportOptions, Model, OnnxCheck, check_onnx, inference_device};
use sren_lab::training::Preset;

/// A model of `arch` with random weights, changed by `change`, for images of 1 or 3 channels.
fn model(
    arch: Architecture,
    group: Equivariance,
    channels: usize,
    change: impl FnOnce(&mut NetworkConfig),
) -> Model {
    let preset = if channels == 1 { Preset::Quick } else { Preset::Photos };
    let mut config = preset.config().unwrap();
    if let Some(folder) = &mut config.image_folder {
        folder.classes = ["a", "b", "c"].map(String::from).to_vec();
    }
    (config.arch, config.model) = (arch.name().into(), group.name().into());
    let classes = config.classes().len();
    let mut network = arch.config_for(group, channels, classes);
    change(&mut network);
    config.network = Some(network.clone());
    let device = inference_device();
    device.seed(3);
    let network = network.init(&device).unwrap();
    let mut weights = Weights::of(&network);
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    for (name, (_, values)) in &mut weights.tensors {
        let last = name.rsplit('.').next().unwrap();
        let (middle, width) = match last {
            "gamma" | "running_var" => (1.0, 1.0),
            "beta" | "running_mean" | "bias" => (0.0, 0.6),
            _ => continue,
        };
        values.iter_mut().for_each(|value| *value = middle + width * (random() - 0.5));
    }
    Model { network: weights.apply(network).unwrap(), config }
}

fn checked(model: &Model, options: &ExportOptions) -> OnnxCheck {
    let file = model.export_onnx(options).unwrap();
    let check = check_onnx(model, &file, options).unwrap();
    assert!(check.passed(), "{} {}: {check:?}", model.config.arch, model.config.model);
    check
}

fn of_size(side: usize) -> ExportOptions {
    let mut options = ExportOptions::default();
    options.size = Some(side);
    options
}

#[test]
fn every_architecture_and_group_runs_elsewhere() {
    for arch in Architecture::ALL {
        for group in Equivariance::ALL {
            checked(&model(arch, group, 1, |_| ()), &of_size(20));
        }
    }
}

#[test]
fn every_setting_of_a_network_is_exported() {
    let residual = |config: &mut NetworkConfig, change: fn(&mut sren::models::SimResNetConfig)| {
        if let BackboneConfig::Residual(backbone) = &mut config.backbone {
            change(backbone);
        }
    };
    let log_polar = |config: &mut NetworkConfig, radii: usize| {
        let layers = [[4, 5, 1], [6, 3, 2], [3, 1, 1]];
        let layer = |[c, kernel, stride]: [usize; 3]| ConvLayerConfig::new(c, kernel, stride);
        let layers = layers.map(layer).to_vec();
        config.head = HeadConfig::Orientation(OrientationHeadConfig::new(12, 8));
        let branch = LogPolarConfig::new(24, radii, [0.2, 2.0], 5.0, layers, 6, 8);
        config.log_polar = Some(branch);
    };
    let changes: [&dyn Fn(&mut NetworkConfig); 9] = [
        &|config| log_polar(config, 9),
        &|config| log_polar(config, 10),
        &|config| config.pose.poses = 3,
        &|config| config.pose.scales = 3,
        &|config| config.active_only = false,
        &|config| residual(config, |backbone| backbone.relative_pose = true),
        &|config| residual(config, |backbone| backbone.stages[1].dilation = 2),
        &|config| {
            let poses = config.pose.clone();
            if let BackboneConfig::Residual(backbone) = &mut config.backbone {
                backbone.poses_per_block = Some(poses);
            }
        },
        &|config| config.canonical = Some(CanonicalConfig::new(3, 0.5)),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        // The first two with colours as well.
        let channels: &[usize] = if at < 2 { &[1, 3] } else { &[1] };
        for group in Equivariance::ALL {
            for channels in channels {
                checked(&model(Architecture::Blocks, group, *channels, change), &of_size(24));
            }
        }
    }
    // Odd sizes, whose grids lie on pixels and between them.
    for side in [8, 21, 31] {
        checked(&model(Architecture::Photos, Equivariance::Similarity, 3, |_| ()), &of_size(side));
        checked(&model(Architecture::Small, Equivariance::Rotation, 3, |_| ()), &of_size(side));
    }
}

#[test]
fn layouts_agree_and_other_operators_are_named() {
    let model = model(Architecture::Photos, Equivariance::Similarity, 3, |_| ());
    let mut options = of_size(24);
    options.layout = Layout::Nhwc;
    options.outputs = Output::ALL.to_vec();
    checked(&model, &options);
    options.taps = Taps::Deform;
    let file = model.export_onnx(&options).unwrap();
    assert_eq!(file.opset, 19);
    let error = check_onnx(&model, &file, &options).unwrap_err().to_string();
    assert!(error.contains("DeformConv") && error.contains("check_onnx.py"), "{error}");
}

#[test]
fn a_file_of_another_network_fails_the_check() {
    let options = of_size(24);
    let one = model(Architecture::Blocks, Equivariance::Similarity, 1, |_| ());
    let other = model(Architecture::Blocks, Equivariance::Similarity, 1, |config| {
        config.pose.q = 0.4;
    });
    let check = check_onnx(&one, &other.export_onnx(&options).unwrap(), &options).unwrap();
    assert!(!check.passed(), "{check:?}");
}

#[test]
fn what_cannot_be_exported_is_named() {
    let sren = model(Architecture::Blocks, Equivariance::Similarity, 1, |_| ());
    let error = sren.export_onnx(&of_size(7)).unwrap_err().to_string();
    assert!(error.contains("8 to 2048 pixels") && error.contains("7"), "{error}");
    let plain = model(Architecture::Blocks, Equivariance::None, 1, |_| ());
    let mut poses = of_size(24);
    poses.outputs = vec![Output::Poses];
    let error = plain.export_onnx(&poses).unwrap_err().to_string();
    assert_eq!(error, "export: expected a network with poses, got a plain CNN");
    let error = check_onnx(&sren, &sren.export_onnx(&poses).unwrap(), &poses);
    assert!(error.unwrap_err().to_string().contains("logits among the outputs"));
    let mut inside = of_size(24);
    inside.with_preprocessing = true;
    assert!(sren.export_onnx(&inside).unwrap_err().to_string().contains("56 x 56"));
}
