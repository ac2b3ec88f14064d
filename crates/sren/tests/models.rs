//! Whole networks: their size, their equivariance, their weights in a file.

mod support;

use burn::module::Module;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use sren::models::{
    AnyBackbone, AnyHead, Architecture, Backbone, BackboneConfig, CanonicalConfig, ConvLayerConfig,
    HeadConfig, LogPolarConfig, Network, NetworkConfig, OrientationHeadConfig, PatchEncoderConfig,
    PooledHeadConfig, SimResNetConfig, StageConfig, TrainingBatch, current_name, marginalise,
    parameter_count,
};
use sren::{Equivariance, PoseEstimatorConfig, Precision, Similarity, Weights};
use support::{assert_close, device, tensor, values};

/// Two soft shapes off the centre, 32 x 32.
fn images(device: &Device) -> Tensor<4> {
    let pixel = |i: usize| {
        let (n, y, x) = (i / 1024, (i / 32 % 32) as f32, (i % 32) as f32);
        let blob = |cx: f32, cy: f32, s: f32| (-((x - cx).powi(2) + (y - cy).powi(2)) / s).exp();
        let more = if n == 0 { blob(21.0, 17.0, 6.0) } else { blob(12.0, 22.0, 20.0) };
        (blob(13.0, 12.0, 14.0) + more).min(1.0)
    };
    let data = TensorData::new((0..2 * 1024).map(pixel).collect::<Vec<f32>>(), [2, 32, 32, 1]);
    Tensor::from_data(data, device)
}

/// A rotation by 90 degrees.
fn rotated(x: Tensor<4>) -> Tensor<4> {
    x.swap_dims(1, 2).flip([2])
}

fn network(arch: Architecture, group: Equivariance, device: &Device) -> Network {
    arch.config_for(group, 1, 10).init(device).unwrap()
}

fn log_polar() -> LogPolarConfig {
    let layers = vec![ConvLayerConfig::new(6, 5, 1), ConvLayerConfig::new(4, 3, 2)];
    LogPolarConfig::new(48, 12, [0.15, 2.4], 7.0, layers, 5, 12)
}

fn residual(stages: &[[usize; 3]]) -> SimResNetConfig {
    let stages = stages.iter().map(|[c, blocks, stride]| StageConfig::new(*c, *blocks, *stride));
    SimResNetConfig::new(4, 5, 2, stages.collect())
        .with_stem_reference_scale(2.0)
        .with_reference_scale(2.0)
}

fn with_head(backbone: SimResNetConfig, head: HeadConfig) -> NetworkConfig {
    NetworkConfig::new([1, 3], BackboneConfig::Residual(backbone), head)
}

#[test]
fn sizes_are_those_of_the_originals() {
    let size = |arch: Architecture, group, channels, classes| {
        let config = arch.config_for(group, channels, classes);
        let geometry = config.geometry([56, 56]).unwrap();
        let network = config.init(&Device::flex()).unwrap();
        assert_eq!(geometry.parameters(), parameter_count(&network));
        (geometry.parameters(), geometry.multiply_adds() as f64 * 1e-9)
    };
    use Equivariance::{None, Similarity};
    // torchvision's resnet18: 11,689,512 with 1000 classes on three channels.
    assert_eq!(size(Architecture::Resnet18, None, 3, 1000).0, 11_689_512);
    let (parameters, gflop) = size(Architecture::Resnet18, None, 1, 10);
    assert_eq!(parameters, 11_175_370);
    assert!((0.11..0.13).contains(&gflop), "{gflop}");
    // The same backbone in local frames: a head of 512 channels is all that differs.
    let head = |arch: Architecture| {
        let config = arch.config(1, 10);
        let geometry = config.geometry([56, 56]).unwrap();
        let layers = geometry.layers().iter().filter(|layer| layer.name.starts_with("head."));
        layers.map(|layer| layer.parameters).sum::<usize>()
    };
    let backbone = |arch| size(arch, Similarity, 1, 10).0 - head(arch);
    assert_eq!(backbone(Architecture::Resnet18), 11_175_370 - 5_130);
    // Wide residual network 16-8: 10.96 million with 10 classes on three channels.
    let wide = backbone(Architecture::Wrn16_8);
    assert!((10_900_000..11_050_000).contains(&wide), "{wide}");
    assert!(size(Architecture::Small, Similarity, 1, 10).0 < 450_000);
    assert!(size(Architecture::Blocks, Similarity, 1, 10).0 < 100_000);
    for arch in Architecture::ALL {
        size(arch, Similarity, 3, 7);
    }
}

#[test]
fn layers_are_named_as_their_weights() {
    for arch in Architecture::ALL {
        let config = arch.config(1, 10);
        let weights = Weights::of(&config.init(&Device::flex()).unwrap());
        let known = |name: &str| weights.tensors.keys().any(|known| known.starts_with(name));
        for layer in config.geometry([56, 56]).unwrap().layers() {
            let name = layer.name.strip_suffix("hidden").unwrap_or(&layer.name);
            assert!(known(name), "{}", layer.name);
        }
    }
}

#[test]
fn features_on_patches_are_gated() {
    let device = Device::flex();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    let x = images(&device);
    let fields = net.pose_fields(&x).unwrap();
    let faint = fields.iter().map(|field| {
        let confidence = field.confidence().iter().map(|gate| 0.5 * gate).collect();
        field.clone().with_confidence(confidence).unwrap()
    });
    let maps = |fields| net.feature_maps(x.clone(), &net.frames_of(fields).unwrap()).unwrap();
    let (faint, full) = (maps(faint.collect()), maps(fields));
    assert_eq!(full.len(), 4);
    for ((name, faint), (_, full)) in faint.into_iter().zip(full).take(3) {
        assert!(values(&full.values).iter().any(|value| *value > 0.01), "{name}");
        assert_close("half the gate", &(faint.values * 2.0), &full.values, 1e-6);
    }
}

#[test]
fn every_group_answers_and_those_with_rotations_are_invariant_to_a_quarter_turn() {
    let device = Device::flex();
    use Architecture::{Blocks, Photos, Resnet16, Resnet18, Small};
    for arch in [Small, Blocks, Resnet18, Resnet16, Photos] {
        for group in Equivariance::ALL {
            device.seed(3);
            let mut config = arch.config_for(group, 1, 10);
            if let HeadConfig::Orientation(head) = &mut config.head {
                head.upright_prior = 0.0;
            }
            let net = config.init(&device).unwrap();
            let x = images(&device);
            let upright = net.forward(x.clone()).unwrap();
            let after = net.forward(rotated(x)).unwrap();
            assert_eq!(upright.dims(), [2, 10]);
            assert!(values(&upright).iter().all(|v| v.is_finite()));
            if group.includes_rotation() {
                assert_close(&format!("{arch:?} {group:?}"), &after, &upright, 1e-3);
            }
        }
    }
}

#[test]
fn feature_maps_rotate_with_the_image_and_every_parameter_learns() {
    let device = device();
    let x = images(&device);
    let pooled = || HeadConfig::Pooled(PooledHeadConfig::new());
    let blocks = || residual(&[[6, 1, 1], [8, 1, 2]]);
    for config in [
        Architecture::Small.config(1, 10),
        with_head(blocks(), pooled()),
        with_head(blocks().with_poses_per_block(Some(PoseEstimatorConfig::new())), pooled()),
    ] {
        let net = config.init(&device).unwrap();
        let plain = net.valid();
        let maps =
            |x: Tensor<4>| plain.feature_maps(x.clone(), &plain.frames(&x).unwrap()).unwrap();
        let inner = x.clone().without_autodiff();
        for ((name, upright), (_, after)) in
            maps(inner.clone()).into_iter().zip(maps(rotated(inner)))
        {
            assert_eq!(upright.values.dims()[1], upright.grid.height);
            assert_close(&name, &after.values, &rotated(upright.values), 1e-3);
        }
        let gradients = net.forward(x.clone()).unwrap().square().sum().backward();
        let convs: Vec<_> = match &net.classifier().backbone {
            AnyBackbone::Residual(backbone) => backbone
                .blocks
                .iter()
                .flat_map(|block| [&block.conv1, &block.conv2])
                .chain([&backbone.stem])
                .collect(),
            AnyBackbone::Patches(backbone) => {
                let layers = backbone.layers.iter().map(|layer| &layer.conv);
                layers.chain([&backbone.projection]).collect()
            }
        };
        for conv in convs {
            let gradient = conv.weight.val().grad(&gradients).unwrap();
            assert!(values(&gradient).iter().any(|v| *v != 0.0), "{conv}");
        }
    }
}

fn orientation(head: OrientationHeadConfig) -> NetworkConfig {
    with_head(residual(&[[6, 1, 1]]), HeadConfig::Orientation(head))
}

#[test]
fn rotating_the_image_shifts_the_scores_to_another_orientation() {
    let device = Device::flex();
    let head = |prior: f64, moments: usize| {
        OrientationHeadConfig::new(12, 8).with_upright_prior(prior).with_moments(moments)
    };
    let scores = |net: &Network, x: Tensor<4>| {
        net.classifier().scores_in(x.clone(), &net.frames(&x).unwrap()).unwrap()
    };
    let x = images(&device);
    let after = rotated(x.clone());
    for (prior, moments) in [(0.0, 3), (0.4, 3), (0.0, 7), (0.4, 7)] {
        device.seed(5);
        let net = orientation(head(prior, moments)).init(&device).unwrap();
        let (own, shifted) = (scores(&net, x.clone()), scores(&net, after.clone()));
        assert_eq!(own.dims(), [2, 12, 3]);
        // 90 degrees are 3 of 12 steps.
        let first = own.clone().slice([0..2, 3..12, 0..3]);
        assert_close("shifted", &shifted.clone().slice([0..2, 0..9, 0..3]), &first, 1e-3);
        let spread = own.clone().max_dim(1) - own.clone().min_dim(1);
        assert!(values(&spread).iter().any(|v| *v > 1e-3), "{spread}");
        // Marginalised without a prior, the shift cancels.
        assert_close("any", &marginalise(own.clone(), 0.0), &marginalise(shifted, 0.0), 1e-4);
        let answer = net.forward(x.clone()).unwrap();
        assert_close("answer", &answer, &marginalise(own, prior), 1e-6);
        let change = (answer - net.forward(after.clone()).unwrap()).abs().max();
        assert_eq!(change.into_scalar::<f32>() > 1e-4, prior > 0.0);
    }
    // Without rotations there is one orientation, and the same weights.
    let config = orientation(head(0.4, 3));
    let plain = config.clone().with_equivariance(Equivariance::Scale).init(&device).unwrap();
    assert_eq!(scores(&plain, x).dims(), [2, 1, 3]);
    let parameters =
        |moments| parameter_count(&orientation(head(0.0, moments)).init(&device).unwrap());
    assert_eq!(parameter_count(&plain), parameters(3));
    // Each further moment has two weights for each of 6 features and 8 channels.
    assert_eq!(parameters(5), parameters(3) + 2 * 96);
    for (count, prior, moments) in [
        (0, 0.0, 3),
        (6, 0.0, 3),
        (4000, 0.0, 3),
        (8, 1.0, 3),
        (8, -0.1, 3),
        (8, f64::NAN, 3),
        (8, 0.0, 0),
        (8, 0.0, 8),
        (8, 0.0, usize::MAX),
    ] {
        let bad = OrientationHeadConfig::new(count, 8).with_upright_prior(prior);
        let bad = orientation(bad.with_moments(moments));
        assert!(bad.init(&device).is_err() && bad.geometry([56, 56]).is_err());
    }
}

#[test]
fn the_canonicalised_branch_sees_the_image_rotated_upright() {
    let device = device();
    let config = |weight: f64| {
        with_head(
            residual(&[[6, 1, 1], [8, 1, 2]]),
            HeadConfig::Orientation(OrientationHeadConfig::new(12, 8)),
        )
        .with_canonical(Some(CanonicalConfig::new(2, weight)))
    };
    let x = images(&device);
    for weight in [0.0, 0.6, 1.0] {
        device.seed(5);
        let net = config(weight).init(&device).unwrap();
        let Network::Canonicalised(pair) = &net else { panic!("one classifier") };
        // The plain branch by itself is not invariant; canonicalised it is.
        let alone = [x.clone(), rotated(x.clone())].map(|x| pair.branch.forward(x).unwrap());
        let change = (alone[0].clone() - alone[1].clone()).abs().max().into_scalar::<f32>();
        assert!(change > 1e-3, "{change}");
        let [answer, after] = [x.clone(), rotated(x.clone())].map(|x| net.forward(x).unwrap());
        assert_close("answer", &after, &answer, 1e-3);
        // Both learn by their weight.
        let gradients = answer.square().sum().backward();
        let learns = |weight: &Tensor<2>| {
            weight.grad(&gradients).is_some_and(|g| values(&g).iter().any(|v| *v != 0.0))
        };
        let linear = |head: &AnyHead| match head {
            AnyHead::Pooled(head) => head.linear.weight.val(),
            AnyHead::Orientation(head) => head.linear.weight.val(),
        };
        assert_eq!(learns(&linear(&pair.classifier.head)), weight < 1.0);
        assert_eq!(learns(&linear(&pair.branch.head)), weight > 0.0);
    }
    // A group without rotations canonicalises nothing.
    let plain = config(1.0).with_equivariance(Equivariance::None).init(&device).unwrap();
    let Network::Canonicalised(pair) = &plain else { panic!("one classifier") };
    let own = pair.branch.forward(x.clone()).unwrap();
    assert_close("as it is", &plain.forward(x).unwrap(), &log_softmax(own, 1), 1e-4);

    let patches = Architecture::Small.config(1, 10);
    let canonical = |rotations, weight| Some(CanonicalConfig::new(rotations, weight));
    for bad in [
        patches.with_canonical(canonical(2, 0.5)),
        config(0.5).with_canonical(canonical(0, 0.5)),
        config(0.5).with_canonical(canonical(1000, 0.5)),
        config(0.5).with_canonical(canonical(2, 1.1)),
        config(0.5).with_canonical(canonical(2, f64::NAN)),
    ] {
        assert!(bad.init(&device).is_err() && bad.geometry([56, 56]).is_err());
    }
}

#[test]
fn the_loss_counts_class_orientation_and_branch() {
    let device = device();
    let x = images(&device);
    let batch = |angle: f64| TrainingBatch {
        images: x.clone(),
        targets: Tensor::<1, Int>::from_data(TensorData::new(vec![0i32, 2], [2]), &device),
        transforms: vec![Similarity::new(1.0, angle, [0.0; 2]).unwrap(); 2],
    };
    let of_targets = |logits: Tensor<2>| {
        let all = values(&log_softmax(logits, 1));
        -0.5 * (all[0] + all[10 + 2])
    };
    let with_log_polar = Architecture::Small.config(1, 10).with_log_polar(Some(log_polar()));
    for net in [
        network(Architecture::Small, Equivariance::Similarity, &device),
        network(Architecture::Photos, Equivariance::Similarity, &device),
        with_log_polar.init(&device).unwrap(),
    ] {
        let frames = net.frames(&x).unwrap();
        let scores = net.classifier().scores_in(x.clone(), &frames).unwrap();
        let mut class = of_targets(marginalise(scores.clone(), 0.0));
        if let Network::Canonicalised(pair) = &net {
            class += of_targets(pair.branch.forward(x.clone()).unwrap());
        }
        // The scores of the true class, over 24 orientations.
        let own = [(0, 0), (1, 2)].map(|(image, class)| {
            let own = scores.clone().slice([image..image + 1, 0..24, class..class + 1]);
            values(&log_softmax(own.reshape([1, 24]), 1))
        });
        // An image that is rotated by 0.3 radians is upright after -1.146 steps.
        let upright = |steps: f32| {
            move |at: usize| {
                let away = (at as f32 - steps).rem_euclid(24.0);
                (0.5 - 0.25 * away.min(24.0 - away)).max(0.0)
            }
        };
        for (angle, steps, weight) in [(0.0, 0.0, 0.25), (0.3, -1.145_916, 0.5)] {
            let probability = upright(steps);
            let cross = |own: &Vec<f32>| -> f32 {
                own.iter().enumerate().map(|(at, log)| -probability(at) * log).sum()
            };
            let expected = class + weight * 0.5 * (cross(&own[0]) + cross(&own[1]));
            let found = net.loss(batch(angle), &frames, None).unwrap();
            let value = found.loss.clone().into_scalar::<f32>();
            assert!((value - expected).abs() < 1e-4 * expected, "{value} {expected}");
            let gradients = found.loss.backward();
            let AnyBackbone::Residual(backbone) = &net.classifier().backbone else { continue };
            let gradient = backbone.stem.weight.val().grad(&gradients).unwrap();
            assert!(values(&gradient).iter().any(|v| *v != 0.0));
        }
    }
    let net = network(Architecture::Blocks, Equivariance::Similarity, &device);
    let wrong = TrainingBatch { transforms: Vec::new(), ..batch(0.0) };
    assert!(net.loss(wrong, &net.frames(&x).unwrap(), None).is_err());
    for weights in [vec![1.0; 9], vec![0.0; 10], vec![f32::NAN; 10]] {
        assert!(net.loss(batch(0.0), &net.frames(&x).unwrap(), Some(weights)).is_err());
    }
}

#[test]
fn a_blank_image_has_no_features_and_an_answer() {
    let device = device();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    for net in [net.clone(), net.valid()] {
        let blank = Tensor::<4>::zeros([2, 32, 32, 1], &device);
        let frames = net.frames(&blank).unwrap();
        let features = net.classifier().backbone.forward(blank.clone(), &frames).unwrap();
        assert!(values(&features.values).iter().all(|v| *v == 0.0));
        assert!(values(&net.forward(blank).unwrap()).iter().all(|v| v.is_finite()));
    }
}

#[test]
fn weights_come_back_from_a_file_and_faults_are_named() {
    let device = device();
    let arch = Architecture::Small;
    let trained = network(arch, Equivariance::Similarity, &device);
    // A pass in training moves the running averages.
    trained.forward(images(&device)).unwrap();
    let weights = Weights::of(&trained);
    assert!(weights.tensors.contains_key("backbone.layers.0.conv.weight"));
    assert!(weights.tensors["backbone.norm.running_var"].1.iter().any(|v| *v != 1.0));
    let bytes = weights.to_bytes(Precision::Single).unwrap();
    assert_eq!(bytes, weights.to_bytes(Precision::Single).unwrap());
    assert_eq!(Weights::from_bytes(&bytes).unwrap(), weights);
    let other = network(arch, Equivariance::Similarity, &device);
    let loaded = Weights::from_bytes(&bytes).unwrap().apply(other).unwrap();
    assert_eq!(Weights::of(&loaded), weights);
    let x = images(&Device::flex());
    let answer = |net: &Network| values(&net.valid().forward(x.clone()).unwrap());
    assert_eq!(answer(&loaded), answer(&trained));

    for cut in [0, 7, 20, bytes.len() / 2, bytes.len() - 1] {
        assert!(Weights::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    let error = |weights: &Weights| {
        let net = network(arch, Equivariance::Similarity, &device);
        weights.apply(net).unwrap_err().to_string()
    };
    let mut fewer = weights.clone();
    fewer.tensors.remove("head.linear.bias");
    assert_eq!(error(&fewer), "safetensors: expected head.linear.bias of [10], got nothing");
    let mut more = weights.clone();
    more.tensors.insert("x".into(), (vec![1], vec![0.0]));
    assert!(error(&more).contains("tensors of the network"));
}

#[test]
fn weights_in_half_precision_and_metadata_come_back() {
    let mut weights = Weights::default();
    // 1, -0.1 rounded to eleven bits, and the smallest number above 0.
    let values = vec![1.0, -0.099_975_586, 2f32.powi(-24)];
    weights.tensors.insert("a".into(), (vec![3], values));
    weights.metadata.extend([("b", "2"), ("a", "1")].map(|(k, v)| (k.to_string(), v.to_string())));
    let bytes = weights.to_bytes(Precision::Half).unwrap();
    assert_eq!(Weights::from_bytes(&bytes).unwrap(), weights);
    assert_eq!(bytes, weights.to_bytes(Precision::Half).unwrap());
    let header = br#"{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,12]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend([0; 12]);
    assert!(Weights::from_bytes(&file).is_err());
}

#[test]
fn names_of_version_0_1_0_are_translated() {
    let patches = ["window.0.conv.weight", "stem.weight", "norm.gamma", "head.bias"];
    let names: Vec<String> = patches.iter().map(|n| current_name(n, patches)).collect();
    assert_eq!(
        names,
        [
            "backbone.layers.0.conv.weight",
            "backbone.projection.weight",
            "backbone.norm.gamma",
            "head.linear.bias"
        ]
    );
    let pair = ["stem.weight", "orientation.turned.weight", "second_look.blocks.1.conv2.weight"];
    let names: Vec<String> = pair.iter().map(|n| current_name(n, pair)).collect();
    assert_eq!(
        names,
        [
            "classifier.backbone.stem.weight",
            "classifier.head.moments.weight",
            "branch.backbone.blocks.1.conv2.weight"
        ]
    );
}

#[test]
fn wrong_images_and_settings_are_errors() {
    let device = Device::flex();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    let error = net.forward(tensor(1, [1, 32, 32, 3], &device)).unwrap_err().to_string();
    assert_eq!(error, "Classifier: expected images of 1 channels, got 3");
    let pooled = |dropout: f64| HeadConfig::Pooled(PooledHeadConfig::new().with_dropout(dropout));
    assert!(with_head(residual(&[[8, 1, 1]]), pooled(1.0)).init(&device).is_err());
    assert!(with_head(residual(&[[8, 0, 1]]), pooled(0.0)).init(&device).is_err());
    let even = PatchEncoderConfig::new(9, 4, 5.0, vec![ConvLayerConfig::new(4, 4, 2)], 8);
    let even = NetworkConfig::new([1, 10], BackboneConfig::Patches(even), pooled(0.0));
    assert!(even.init(&device).is_err());
    assert!(Architecture::Small.config(1, 1).init(&device).is_err());
    assert!("resnet17".parse::<Architecture>().is_err());
    for arch in Architecture::ALL {
        assert_eq!(arch.name().parse::<Architecture>().unwrap(), arch);
    }
}

#[test]
fn absurd_networks_are_errors_before_anything_is_allocated() {
    for arch in Architecture::ALL {
        arch.config(3, 1000).geometry([224, 224]).unwrap();
    }
    let pooled = || HeadConfig::Pooled(PooledHeadConfig::new());
    let net = |backbone: SimResNetConfig| with_head(backbone, pooled());
    let stage = |channels, blocks| residual(&[[channels, blocks, 1]]);
    let small = || Architecture::Small.config(1, 10);
    let pose = PoseEstimatorConfig::new;
    let patches = |channels, stride| {
        let layers = vec![ConvLayerConfig::new(channels, 3, stride)];
        let encoder = PatchEncoderConfig::new(21, 4, 6.0, layers, 8);
        NetworkConfig::new([1, 10], BackboneConfig::Patches(encoder), pooled())
    };
    let even_patches = PatchEncoderConfig::new(20, 4, 6.0, vec![ConvLayerConfig::new(4, 3, 2)], 8);
    let even_patches = NetworkConfig::new([1, 10], BackboneConfig::Patches(even_patches), pooled());
    let own = |pose: PoseEstimatorConfig| net(stage(8, 1).with_poses_per_block(Some(pose)));
    let absurd: [(&str, NetworkConfig); 12] = [
        ("parameters", net(stage(20_000, 1).with_relative_pose(true))),
        ("channels", net(stage(usize::MAX, 1))),
        ("blocks", net(stage(1, usize::MAX))),
        ("rings", small().with_pose(pose().with_rings(usize::MAX))),
        ("scales", small().with_pose(pose().with_scales(1 << 40))),
        ("poses", small().with_pose(pose().with_poses(100))),
        ("outer", small().with_pose(pose().with_outer(1e300))),
        ("reference_scale", net(stage(8, 1).with_reference_scale(f64::NAN))),
        ("rings", own(pose().with_rings(1000))),
        ("an odd side", even_patches),
        ("stride", patches(7, 0)),
        ("channels", patches(1 << 40, 1)),
    ];
    for (name, config) in absurd {
        let error = config.geometry([56, 56]).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    for (kernel, stride) in [(usize::MAX, 1), (0, 1), (1001, 1), (3, 0), (3, usize::MAX)] {
        let stem = SimResNetConfig::new(8, kernel, stride, vec![StageConfig::new(8, 1, 1)]);
        assert!(net(stem).geometry([56, 56]).is_err());
    }
    assert!(small().geometry([usize::MAX, 2]).is_err());
    for (config, side, name) in [
        (Architecture::Resnet16.config(1, 10), 2048, "taps of a layer"),
        (net(stage(3000, 1)), 1024, "values of a layer"),
        (small(), 2048, "values of a layer"),
    ] {
        let error = config.geometry([side, side]).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
