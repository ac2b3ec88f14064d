//! Whole networks: their size, their equivariance, their weights in a file.

mod support;

use burn::module::Module;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};
use sren::models::{
    Architecture, OrientationConfig, SecondLookConfig, SimResNet, SimResNetConfig, StageConfig,
    WindowLayerConfig, over_turns, parameter_count,
};
use sren::{Equivariance, Grid, Weights};
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

fn network(arch: Architecture, kind: Equivariance, device: &Device) -> SimResNet {
    arch.config(1, 10).with_equivariance(kind).init(device).unwrap()
}

#[test]
fn sizes_are_those_of_the_originals() {
    let size = |arch: Architecture, channels, classes| {
        let net = arch.config(channels, classes).init(&Device::flex()).unwrap();
        let costs = net.layer_costs(&Grid::pixels(56, 56)).unwrap();
        let parameters: usize = costs.iter().map(|cost| cost.parameters).sum();
        assert_eq!(parameters, parameter_count(&net));
        (parameters, costs.iter().map(|cost| cost.multiply_adds).sum::<usize>() as f64 * 1e-9)
    };
    // torchvision's resnet18: 11,689,512 with 1000 classes on three channels.
    assert_eq!(size(Architecture::Resnet18, 3, 1000).0, 11_689_512);
    let (parameters, gflop) = size(Architecture::Resnet18, 1, 10);
    assert_eq!(parameters, 11_175_370);
    assert!((0.11..0.13).contains(&gflop), "{gflop}");
    // Wide residual network 16-8: 10.96 million with 10 classes on three channels.
    let (parameters, _) = size(Architecture::Wrn16_8, 3, 10);
    assert!((10_900_000..11_050_000).contains(&parameters), "{parameters}");
    assert!(size(Architecture::Small, 1, 10).0 < 450_000);
    assert!(size(Architecture::Blocks, 1, 10).0 < 100_000);
}

#[test]
fn features_of_windows_are_weighed_by_the_gate() {
    let device = Device::flex();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    let x = images(&device);
    let fields = net.pose_fields(&x).unwrap();
    let faint = fields.iter().map(|field| {
        let confidence = field.confidence().iter().map(|gate| 0.5 * gate).collect();
        field.clone().with_confidence(confidence).unwrap()
    });
    let maps = |fields| net.window_maps(&x, &net.frames_of(fields).unwrap()).unwrap();
    let (faint, whole) = (maps(faint.collect()), maps(fields));
    assert_eq!(whole.len(), 3);
    for (faint, whole) in faint.into_iter().zip(whole) {
        assert!(values(&whole).iter().any(|value| *value > 0.01));
        assert_close("half the gate", &(faint * 2.0), &whole, 1e-6);
    }
}

#[test]
fn every_kind_answers_and_those_that_follow_turns_give_the_same_for_a_quarter_turn() {
    let device = Device::flex();
    use Architecture::{Blocks, Photos, Resnet16, Resnet18, Small};
    for arch in [Small, Blocks, Resnet18, Resnet16, Photos] {
        for kind in Equivariance::ALL {
            device.seed(3);
            let mut config = arch.config(1, 10).with_equivariance(kind);
            if let Some(orientation) = &mut config.orientation {
                orientation.upright = 0.0;
            }
            let net = config.init(&device).unwrap();
            let x = images(&device);
            let upright = net.forward(x.clone()).unwrap();
            let turned = net.forward(x.swap_dims(1, 2).flip([2])).unwrap();
            assert_eq!(upright.dims(), [2, 10]);
            assert!(values(&upright).iter().all(|v| v.is_finite()));
            if matches!(kind, Equivariance::Rotation | Equivariance::Similarity) {
                assert_close(&format!("{arch:?} {kind:?}"), &turned, &upright, 1e-3);
            }
        }
    }
}

#[test]
fn feature_maps_turn_with_the_image_and_every_parameter_learns() {
    let device = device();
    let x = images(&device);
    let blocks = |kernel: usize| {
        let stages = vec![StageConfig::new(6, 1, 1), StageConfig::new(8, 1, 2)];
        SimResNetConfig::new(10, 1, 4, kernel, 2, stages).with_stem_kappa(0.5).with_kappa(0.5)
    };
    let window = vec![WindowLayerConfig::new(4, 3, 2), WindowLayerConfig::new(6, 3, 2)];
    for config in [
        Architecture::Small.config(1, 10),
        blocks(5),
        blocks(5).with_poses_per_block(true),
        blocks(9).with_stem_window(window),
    ] {
        let net = config.init(&device).unwrap();
        let plain = net.valid();
        let turn = |x: Tensor<4>| x.swap_dims(1, 2).flip([2]);
        let maps =
            |x: Tensor<4>| plain.feature_maps(x.clone(), &plain.frames(&x).unwrap()).unwrap();
        let inner = x.clone().without_autodiff();
        for ((upright, grid), (turned, _)) in maps(inner.clone()).into_iter().zip(maps(turn(inner)))
        {
            assert_eq!(upright.dims()[1], grid.height);
            assert_close("feature map", &turned, &turn(upright), 1e-3);
        }
        let gradients = net.forward(x.clone()).unwrap().square().sum().backward();
        let blocks = net.blocks.iter().map(|block| &block.conv2);
        let windows = net.window.iter().map(|layer| &layer.conv);
        for conv in blocks.chain(windows).chain([&net.stem]) {
            let gradient = conv.weight.val().grad(&gradients).unwrap();
            assert!(values(&gradient).iter().any(|v| *v != 0.0), "{conv}");
        }
    }
}

#[test]
fn turning_the_image_moves_the_scores_to_another_turn() {
    let device = Device::flex();
    let stages = vec![StageConfig::new(6, 1, 1)];
    let config = |upright: f64, moments: Option<usize>| {
        let orientation = OrientationConfig::new(12, 8).with_upright(upright).with_moments(moments);
        SimResNetConfig::new(3, 1, 4, 5, 2, stages.clone())
            .with_stem_kappa(0.5)
            .with_kappa(0.5)
            .with_orientation(Some(orientation))
    };
    let scores =
        |net: &SimResNet, x: Tensor<4>| net.scores_in(x.clone(), &net.frames(&x).unwrap()).unwrap();
    let x = images(&device);
    let turned = x.clone().swap_dims(1, 2).flip([2]);
    for (upright, moments) in [(0.0, None), (0.4, None), (0.0, Some(7)), (0.4, Some(7))] {
        device.seed(5);
        let net = config(upright, moments).init(&device).unwrap();
        let (own, moved) = (scores(&net, x.clone()), scores(&net, turned.clone()));
        assert_eq!(own.dims(), [2, 12, 3]);
        // A quarter turn is 3 of 12.
        let first = own.clone().slice([0..2, 3..12, 0..3]);
        assert_close("moved", &moved.clone().slice([0..2, 0..9, 0..3]), &first, 1e-3);
        let spread = own.clone().max_dim(1) - own.clone().min_dim(1);
        assert!(values(&spread).iter().any(|v| *v > 1e-3), "{spread}");
        // Sums over turns do not see it, unless one of them is preferred.
        assert_close("any turn", &over_turns(own.clone(), 0.0), &over_turns(moved, 0.0), 1e-4);
        let answer = net.forward(x.clone()).unwrap();
        assert_close("answer", &answer, &over_turns(own, upright), 1e-6);
        let change = (answer - net.forward(turned.clone()).unwrap()).abs().max();
        assert_eq!(change.into_scalar::<f32>() > 1e-4, upright > 0.0);
    }
    // Without rotations there is nothing to ask, and the same weights.
    let plain = config(0.4, None).with_equivariance(Equivariance::Scale).init(&device).unwrap();
    assert_eq!(scores(&plain, x).dims(), [2, 1, 3]);
    let parameters = |moments| parameter_count(&config(0.0, moments).init(&device).unwrap());
    assert_eq!(parameter_count(&plain), parameters(None));
    // Three are the rule; each further moment has two weights for each of 6 features and 8 channels.
    assert_eq!(
        [parameters(Some(3)), parameters(Some(5))],
        [0, 2].map(|m| parameters(None) + m * 96)
    );
    for (turns, upright, moments) in [
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
        let bad = OrientationConfig::new(turns, 8).with_upright(upright);
        let bad = config(0.0, None).with_orientation(Some(bad.with_moments(Some(moments))));
        assert!(bad.init(&device).is_err() && bad.check_bounds([56, 56]).is_err());
    }
}

#[test]
fn the_second_look_sees_the_image_turned_upright() {
    let device = device();
    let stages = vec![StageConfig::new(6, 1, 1), StageConfig::new(8, 1, 2)];
    let config = |weight: f64| {
        SimResNetConfig::new(3, 1, 4, 5, 2, stages.clone())
            .with_stem_kappa(0.5)
            .with_kappa(0.5)
            .with_orientation(Some(OrientationConfig::new(12, 8)))
            .with_second_look(Some(SecondLookConfig::new(2, weight)))
    };
    let x = images(&device);
    let turn = |x: Tensor<4>| x.swap_dims(1, 2).flip([2]);
    for weight in [0.0, 0.6, 1.0] {
        device.seed(5);
        let net = config(weight).init(&device).unwrap();
        let look = net.second_look.as_ref().unwrap();
        // A plain network by itself does not bear turning; what turns the image first does.
        let alone = [x.clone(), turn(x.clone())].map(|x| look.forward(x).unwrap());
        let change = (alone[0].clone() - alone[1].clone()).abs().max().into_scalar::<f32>();
        assert!(change > 1e-3, "{change}");
        let [answer, turned] = [x.clone(), turn(x.clone())].map(|x| net.forward(x).unwrap());
        assert_close("answer", &turned, &answer, 1e-3);
        // Both looks learn by what they count.
        let gradients = answer.square().sum().backward();
        let learns = |weight: &Tensor<2>| {
            weight.grad(&gradients).is_some_and(|g| values(&g).iter().any(|v| *v != 0.0))
        };
        assert_eq!(learns(&net.head.weight.val()), weight < 1.0);
        assert_eq!(learns(&look.head.weight.val()), weight > 0.0);
    }
    // A kind without rotations looks at the image as it is.
    let plain = config(1.0).with_equivariance(Equivariance::None).init(&device).unwrap();
    let own = plain.second_look.as_ref().unwrap().forward(x.clone()).unwrap();
    assert_close("as it is", &plain.forward(x).unwrap(), &log_softmax(own, 1), 1e-4);
    let first = config(0.5);
    let masked = first.clone().with_stem_window(vec![WindowLayerConfig::new(4, 3, 2)]);
    let look =
        |turns, weight| first.clone().with_second_look(Some(SecondLookConfig::new(turns, weight)));
    for bad in [masked, look(0, 0.5), look(1000, 0.5), look(2, 1.1), look(2, f64::NAN)] {
        assert!(bad.init(&device).is_err() && bad.check_bounds([56, 56]).is_err());
    }
}

#[test]
fn a_blank_image_has_no_features_and_an_answer() {
    let device = device();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    for net in [net.clone(), net.valid()] {
        let blank = Tensor::<4>::zeros([2, 32, 32, 1], &device);
        let (features, _) = net.features(blank.clone(), &net.frames(&blank).unwrap()).unwrap();
        assert!(values(&features).iter().all(|v| *v == 0.0));
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
    assert!(weights.tensors.contains_key("window.0.conv.weight"));
    assert!(weights.tensors["norm.running_var"].1.iter().any(|v| *v != 1.0));
    let bytes = weights.to_bytes();
    assert_eq!(Weights::from_bytes(&bytes).unwrap(), weights);
    let other = network(arch, Equivariance::Similarity, &device);
    let loaded = Weights::from_bytes(&bytes).unwrap().apply(other).unwrap();
    assert_eq!(Weights::of(&loaded), weights);
    let x = images(&Device::flex());
    let answer = |net: &SimResNet| values(&net.valid().forward(x.clone()).unwrap());
    assert_eq!(answer(&loaded), answer(&trained));

    for cut in [0, 7, 20, bytes.len() / 2, bytes.len() - 1] {
        assert!(Weights::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    let refused = |weights: &Weights| {
        let net = network(arch, Equivariance::Similarity, &device);
        weights.apply(net).unwrap_err().to_string()
    };
    let mut fewer = weights.clone();
    fewer.tensors.remove("head.bias");
    assert_eq!(refused(&fewer), "safetensors: expected head.bias of [10], got nothing");
    let mut more = weights.clone();
    more.tensors.insert("x".into(), (vec![1], vec![0.0]));
    assert!(refused(&more).contains("tensors of the network"));
}

#[test]
fn weights_are_read_in_half_precision_too() {
    // 1, -0.1 rounded to eleven bits, and the smallest number above 0.
    let values = [0x3c00_u16, 0xae66, 0x0001];
    let file = |bytes: usize| {
        let header = format!(r#"{{"a":{{"dtype":"F16","shape":[3],"data_offsets":[0,{bytes}]}}}}"#);
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        file
    };
    let read = Weights::from_bytes(&file(6)).unwrap();
    assert_eq!(read.tensors["a"], (vec![3], vec![1.0, -0.099_975_586, 2f32.powi(-24)]));
    let error = Weights::from_bytes(&file(12)).unwrap_err().to_string();
    assert!(error.contains("a to be as long as its shape says"), "{error}");
}

#[test]
fn wrong_images_and_settings_are_refused() {
    let device = Device::flex();
    let net = network(Architecture::Small, Equivariance::Similarity, &device);
    let error = net.forward(tensor(1, [1, 32, 32, 3], &device)).unwrap_err().to_string();
    assert_eq!(error, "SimResNet::pose_fields: expected images of 1 channels, got 3");
    let config = || Architecture::Small.config(1, 10);
    assert!(config().with_head_dropout(1.0).init(&device).is_err());
    let empty = vec![StageConfig::new(8, 0, 1)];
    assert!(SimResNetConfig::new(10, 1, 4, 5, 2, empty).init(&device).is_err());
    let even = vec![WindowLayerConfig::new(4, 4, 2)];
    assert!(config().with_stem_window(even).init(&device).is_err());
    assert!(Architecture::Small.config(1, 1).init(&device).is_err());
    assert!("resnet17".parse::<Architecture>().is_err());
    for arch in Architecture::ALL {
        assert_eq!(arch.name().parse::<Architecture>().unwrap(), arch);
    }
}
